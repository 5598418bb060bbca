package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// openCacheReadOnly opens the cache of a source for reading only: put and removeEntry have no
// effect. Another podd may write the cache at the same time. If there is no cache, the result is
// the same as for a source that was never read. If the cache cannot be read, problems returns a
// Problem.
func openCacheReadOnly(dir, source string) *cache {
	c := &cache{
		dir: dir, source: source, isReadOnly: true,
		wake: make(chan struct{}, 1), storeErrChanged: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	close(c.done)
	st, err := openStoreReadOnly(dir, hashOf(source))
	if err == nil {
		c.store = st
		err = c.readIndex(st)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = c.checkSetAside()
	}
	if err != nil {
		c.mayHaveUnreadIndex = true
		c.addDamage(source, fmt.Errorf("opening the cache: %w", err))
	}
	return c
}

// openStoreReadOnly opens the directory dir/name, which must exist.
func openStoreReadOnly(dir, name string) (*store, error) {
	parent, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return &store{root}, nil
}
