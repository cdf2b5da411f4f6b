package fleet

import (
	"context"
	"fmt"
)

// Look reads the claim of a key, without a claim, and whether there is one. What it says may
// be old.
func (m *Member) Look(ctx context.Context, key string) (c Claim, found bool, err error) {
	e, err := m.o.Directory.Get(ctx, claimKey(key))
	if err != nil {
		return Claim{}, false, fmt.Errorf("look at a key: %w", err)
	}
	return readClaim(e, key)
}

// Owner reads which node has a key, without a claim, and in which epoch: the ID of one that
// is neither dead nor has left as far as is known, and "" when there is none. What it says
// may be old; the node that it names knows.
func (m *Member) Owner(ctx context.Context, key string) (node string, epoch uint64, err error) {
	e, err := m.o.Directory.Get(ctx, claimKey(key))
	if err != nil {
		return "", 0, fmt.Errorf("read who has a key: %w", err)
	}
	c, found, err := readClaim(e, key)
	if err != nil || !found || c.Node == "" {
		return "", c.Epoch, err
	}
	if c.Node == m.id {
		return m.id, c.Epoch, nil
	}
	over, err := m.finished(ctx, c)
	if err != nil {
		return "", 0, fmt.Errorf("read who has a key: %w", err)
	}
	if over {
		return "", c.Epoch, nil
	}
	return c.Node, c.Epoch, nil
}
