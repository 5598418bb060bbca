package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// viewCache reads the cache of a source and never writes: put and drop have no effect.
// Another podd may write the cache at the same time. If there is no cache, the source was
// never read; a cache that cannot be read is a Problem.
func viewCache(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source, readOnly: true,
		wake: make(chan struct{}, 1), failedChanged: make(chan struct{}, 1),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	close(c.ended)
	st, err := viewStore(dir, hashOf(source))
	if err == nil {
		c.store = st
		err = c.readIndex(st)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = c.checkSetAside()
	}
	if err != nil {
		c.unread = true
		c.addDamage(source, fmt.Errorf("opening the cache: %w", err))
	}
	return c
}

// viewStore opens the directory name in dir. It does not create it.
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
