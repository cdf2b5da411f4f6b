package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"
)

// headerEpoch says in which epoch a session of a fleet is, or was when the client saw it.
const headerEpoch = "Coppice-Epoch"

// epochs is in which epoch a client has seen each session. The zero value is empty.
type epochs struct {
	seen remembered[uint64]
	// begun is what executions say of their place, by id.
	begun remembered[url.Values]
}

func (e *epochs) saw(session string, epoch uint64) {
	if epoch != 0 {
		e.seen.set(session, epoch)
	}
}

// placed notes where a fleet has an execution, as its Location says.
func (e *epochs) placed(location string) {
	at, err := url.Parse(location)
	if err == nil && at.RawQuery != "" {
		e.begun.set(path.Base(at.Path), at.Query())
	}
}

// place is what a request about an execution says of its place, so that any server of the
// fleet can say what became of it: with more of one's own, which come in pairs.
func (e *epochs) place(id string, more ...string) url.Values {
	query := maps.Clone(e.begun.get(id))
	for i := 0; i+1 < len(more); i += 2 {
		if query == nil {
			query = url.Values{}
		}
		query.Set(more[i], more[i+1])
	}
	return query
}

// forget is for a session that the client has ended: what it had in memory is gone, as the
// client knows.
func (e *epochs) forget(session string) { e.seen.forget(session) }

// start starts an execution of a session, until there is an answer or patience ends. In a
// fleet it sends the epoch that the client has seen the session in, so that what is sent
// again never begins twice, and code that counts on variables that are gone does not begin
// at all: the error has the code epoch_gone then, once. Who has seen none goes on in the
// one that there is, unless an attempt before may have arrived. At a single server, what may
// have arrived is sent again to that life of the server alone.
func (c *Client) start(ctx context.Context, route, session, id string, in any) (Execution, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return Execution{}, fmt.Errorf("POST %s: %w", route, err)
	}
	wait := c.newPause()
	defer wait.end()
	epoch, life := c.epochs.seen.get(session), ""
	var first attempt
	for {
		now := attempt{time.Now(), c.at.Load()}
		data, header, err := c.startOnce(ctx, route, body, epoch, life)
		if err == nil {
			seen, _ := strconv.ParseUint(header.Get(headerEpoch), 10, 64) // none, but in a fleet
			c.epochs.saw(session, seen)
			c.epochs.placed(header.Get("Location"))
			c.sessions.began(id, session, lifeOf(header))
			var x Execution
			if len(data) == 0 {
				return x, nil
			}
			if err := json.Unmarshal(data, &x); err != nil {
				return x, fmt.Errorf("POST %s: read the answer: %w", route, err)
			}
			return x, nil
		}
		if told, ok := errors.AsType[*Error](err); ok {
			c.epochs.saw(session, told.Epoch)
			if told.Code == "epoch_needed" && epoch == 0 && first.at == nil && told.Epoch != 0 {
				epoch = told.Epoch
				continue
			}
			if life == "" || told.Code != "lost" {
				return Execution{}, told
			}
			err = errUnknown() // another life answers by now, which may have taken it over
		}
		if first.at == nil && arrived(err) {
			first = now
		}
		var begun *Execution
		if life, begun, err = c.resume(ctx, wait, id, first, err); err != nil {
			return Execution{}, fmt.Errorf("POST %s: %w", route, err)
		}
		if begun != nil {
			return *begun, nil
		}
	}
}

func (c *Client) startOnce(ctx context.Context, route string, body []byte, epoch uint64, life string) ([]byte, http.Header, error) {
	req, err := c.request(ctx, http.MethodPost, route, nil, body)
	if err != nil {
		return nil, nil, err
	}
	if epoch != 0 {
		req.Header.Set(headerEpoch, strconv.FormatUint(epoch, 10))
	}
	req.Header.Set(headerServer, cmp.Or(life, "?"))
	return c.exchange(req)
}
