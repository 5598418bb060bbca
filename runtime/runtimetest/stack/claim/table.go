package claim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// A Table stores claims. The zero value is not usable: see Host.
type Table struct {
	Dir string // created when it is first used
	// InUse returns the subnets that are used by anything other than a stack.
	InUse func() ([]netip.Prefix, error)
	// First is called before a claim is taken from an empty table, and Last after the last
	// claim was released, both with the table locked. They may be nil.
	First, Last func() error
}

// Take claims a free number and subnet for a stack in dir. state is the path of its state file.
func (t *Table) Take(dir, state string, owner Owner) (Claim, error) {
	unlock, err := t.lock()
	if err != nil {
		return Claim{}, err
	}
	defer unlock()
	taken, err := t.read()
	if err != nil {
		return Claim{}, err
	}
	if len(taken) == 0 && t.First != nil {
		if err := t.First(); err != nil {
			return Claim{}, err
		}
	}
	used, err := t.InUse()
	if err != nil {
		return Claim{}, err
	}
	c, err := pick(dir, taken, used)
	if err != nil {
		return Claim{}, err
	}
	c.Dir, c.State, c.Owner = dir, state, owner
	return c, t.write(c)
}

// Release releases a claim. It may be called twice.
func (t *Table) Release(c Claim) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	held, err := t.readOne(t.file(c.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != c.Dir {
		return nil
	}
	if err := os.Remove(t.file(c.Number)); err != nil {
		return fmt.Errorf("releasing subnet %s: %w", c.Subnet, err)
	}
	left, err := t.read()
	if err == nil && len(left) == 0 && t.Last != nil {
		err = t.Last()
	}
	return err
}

// SetOwner changes the owner of a claim. The zero Owner detaches it; then its state file
// must exist. It returns false if the claim has been released.
func (t *Table) SetOwner(c Claim, owner Owner) (bool, error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readOne(t.file(c.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != c.Dir {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held.Owner = owner
	return true, t.write(held)
}

// TakeOver makes owner the owner of a stale claim. It returns false if the claim is no
// longer stale, because another process took it over or released it.
func (t *Table) TakeOver(c Claim, owner Owner) (bool, error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readOne(t.file(c.Number))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || held != c || !held.stale() {
		return false, err
	}
	c.Owner = owner
	return true, t.write(c)
}

// Holds reports whether a claim still exists, whatever its owner is.
func (t *Table) Holds(c Claim) (bool, error) {
	all, err := t.All()
	for _, held := range all {
		if held.Number == c.Number && held.Dir == c.Dir {
			return true, err
		}
	}
	return false, err
}

// All returns all claims, ordered by number.
func (t *Table) All() ([]Claim, error) {
	unlock, err := t.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return t.read()
}

func (t *Table) file(number int) string { return filepath.Join(t.Dir, fmt.Sprintf("%d.json", number)) }

func (t *Table) write(c Claim) error {
	data, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(t.file(c.Number), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the claim of subnet %s: %w", c.Subnet, err)
	}
	return nil
}

func (t *Table) read() ([]Claim, error) {
	var all []Claim
	for n := range numbers {
		c, err := t.readOne(t.file(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (t *Table) readOne(file string) (Claim, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Claim{}, fmt.Errorf("reading a claim: %w", err)
	}
	var c Claim
	if err := json.Unmarshal(data, &c); err != nil {
		return Claim{}, fmt.Errorf("decoding claim %s: %w", file, err)
	}
	return c, nil
}
