package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// viewCache reads the cache of a source and never writes: what is put or dropped
// is forgotten. It may be another podd's that writes it meanwhile. No cache is
// one of a source never seen; one that cannot be read is a Problem.
func viewCache(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source, readOnly: true,
		wake: make(chan struct{}, 1), told: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	close(c.ended)
	st, err := viewStore(dir, hashOf(source))
	switch {
	case err == nil:
		c.store = st
		c.readIndex(st)
	case !errors.Is(err, fs.ErrNotExist):
		c.damaged(source, fmt.Errorf("opening it: %w", err))
	}
	return c
}

// viewStore opens the directory name in dir, if it is there.
func viewStore(dir, name string) (*store, error) {
	all, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	root, err := all.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &store{root}, nil
}
