package blobstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// chain is a row of objects that are numbered from 1, of which the last counts. A number is
// written once, by one host, and none is left out: so whoever knows some number finds the
// last, also when a list lags behind.
type chain struct {
	s   *Store
	dir string
}

func (s *Store) records(place string) chain { return chain{s, recordsDir + place + "/"} }

func (s *Store) leases(place string) chain { return chain{s, openDir + place + "/"} }

// none ends a chain: what it was the row of was deleted. It stays for a while, so that a
// number is not written twice.
var none = []byte("coppice none 1\n")

const digits = 16

func (c chain) key(n uint64) string { return fmt.Sprintf("%sn%0*x", c.dir, digits, n) }

// number says which of its chain an object is, 0 when it is no part of one.
func number(key string) uint64 {
	text, ok := strings.CutPrefix(key[strings.LastIndexByte(key, '/')+1:], "n")
	n, err := strconv.ParseUint(text, 16, 63)
	if !ok || err != nil || len(text) != digits {
		return 0
	}
	return n
}

// numbers are those that a list shows, in order.
func (c chain) numbers(ctx context.Context) ([]uint64, error) {
	objects, err := c.s.list(ctx, c.dir)
	if err != nil {
		return nil, err
	}
	var all []uint64
	for _, o := range objects {
		if n := number(o.Key); n > 0 {
			all = append(all, n)
		}
	}
	return all, nil
}

// last returns the last number, 0 for none. The list only says where to begin.
func (c chain) last(ctx context.Context) (uint64, error) {
	all, err := c.numbers(ctx)
	if err != nil {
		return 0, err
	}
	var n uint64
	if len(all) > 0 {
		n = all[len(all)-1]
	}
	for {
		more, err := c.s.bucket.Exists(ctx, c.key(n+1))
		if err != nil || !more {
			return n, err
		}
		n++
	}
}

// newest returns the last number and what it holds; 0 when there is none, or it says so.
func (c chain) newest(ctx context.Context) (n uint64, data []byte, err error) {
	const most = 3 // it may be replaced while it is read
	for range most {
		if n, err = c.last(ctx); err != nil || n == 0 {
			return 0, nil, err
		}
		data, err = c.s.fetch(ctx, c.key(n))
		if err == nil || !gone(err) {
			break
		}
	}
	if gone(err) { // the last is the last to be deleted: a list still shows it
		return 0, nil, nil
	}
	return n, data, err
}

// add writes the number after the last one, which data may depend on. It fails when hosts
// without an end are faster.
func (c chain) add(ctx context.Context, after uint64, data func(n uint64) ([]byte, error)) (uint64, error) {
	for range tries {
		n := after + 1
		b, err := data(n)
		if err != nil {
			return 0, err
		}
		made, err := c.s.create(ctx, c.key(n), b)
		if err != nil {
			return 0, err
		}
		if made {
			return n, nil
		}
		if after, err = c.last(ctx); err != nil {
			return 0, err
		}
		after = max(after, n)
	}
	return 0, errors.New("other hosts write the same record all the time; try again")
}

// clean deletes what is before a number, the oldest first, so that never an older one is the
// last. It does nothing while lists do not show the number: without it and without
// those before it, a host would not find it. What fails here is done by a sweep.
func (c chain) clean(ctx context.Context, before uint64) {
	began := time.Now()
	all, err := c.numbers(ctx)
	if err != nil || len(all) == 0 || all[len(all)-1] < before {
		return
	}
	for _, n := range all {
		if n >= before || c.s.late(began) != nil || c.s.remove(ctx, c.key(n)) != nil {
			return
		}
	}
}

// end has a chain say that there is nothing.
func (s *Store) end(ctx context.Context, c chain) error {
	n, data, err := c.newest(ctx)
	if err != nil || n == 0 {
		return err
	}
	if string(data) != string(none) {
		if n, err = c.add(ctx, n, func(uint64) ([]byte, error) { return none, nil }); err != nil {
			return err
		}
	}
	c.clean(ctx, n)
	return nil
}
