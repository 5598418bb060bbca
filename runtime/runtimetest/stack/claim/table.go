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

// A Table stores claims. Dir and UsedSubnets are required.
type Table struct {
	Dir string // created when it is first used
	// UsedSubnets returns the subnets that are used by anything other than a stack.
	UsedSubnets func() ([]netip.Prefix, error)
	// BeforeFirst is called before Take adds a claim to an empty table. AfterLast is called
	// after Release has removed the last claim. The table is locked during both calls. Both may
	// be nil.
	BeforeFirst, AfterLast func() error
}

// Take adds a claim with a free number and subnet for a stack in dir. state is the path of the
// stack's state file.
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
	if len(taken) == 0 && t.BeforeFirst != nil {
		if err := t.BeforeFirst(); err != nil {
			return Claim{}, err
		}
	}
	used, err := t.UsedSubnets()
	if err != nil {
		return Claim{}, err
	}
	c, err := choose(dir, taken, used)
	if err != nil {
		return Claim{}, err
	}
	c.Dir, c.StateFile, c.Owner = dir, state, owner
	return c, t.write(c)
}

// Release releases a claim. It may be called twice.
func (t *Table) Release(c Claim) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	held, err := t.readClaim(t.claimFile(c.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != c.Dir {
		return nil
	}
	if err := os.Remove(t.claimFile(c.Number)); err != nil {
		return fmt.Errorf("releasing subnet %s: %w", c.Subnet, err)
	}
	left, err := t.read()
	if err == nil && len(left) == 0 && t.AfterLast != nil {
		err = t.AfterLast()
	}
	return err
}

// SetOwner changes the owner of a claim. It returns false if the claim has been released. The
// zero Owner detaches the claim, whose state file must exist.
func (t *Table) SetOwner(c Claim, owner Owner) (exists bool, err error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readClaim(t.claimFile(c.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != c.Dir {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held.Owner = owner
	return true, t.write(held)
}

// TakeOver makes owner the owner of a stale claim. It returns false if the claim is not stale. In
// that case, another process has taken over or released the claim.
func (t *Table) TakeOver(c Claim, owner Owner) (taken bool, err error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readClaim(t.claimFile(c.Number))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || held != c || !held.isStale() {
		return false, err
	}
	c.Owner = owner
	return true, t.write(c)
}

// Contains reports whether the table contains a claim. The owner of the claim does not matter.
func (t *Table) Contains(c Claim) (exists bool, err error) {
	all, err := t.All()
	for _, held := range all {
		if held.Number == c.Number && held.Dir == c.Dir {
			return true, err
		}
	}
	return false, err
}

// All returns all claims in the order of their numbers.
func (t *Table) All() ([]Claim, error) {
	unlock, err := t.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return t.read()
}

func (t *Table) claimFile(number int) string {
	return filepath.Join(t.Dir, fmt.Sprintf("%d.json", number))
}

func (t *Table) write(c Claim) error {
	data, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(t.claimFile(c.Number), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the claim of subnet %s: %w", c.Subnet, err)
	}
	return nil
}

func (t *Table) read() ([]Claim, error) {
	var all []Claim
	for n := range maxClaims {
		c, err := t.readClaim(t.claimFile(n))
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

func (t *Table) readClaim(file string) (Claim, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Claim{}, fmt.Errorf("reading a subnet claim: %w", err)
	}
	var c Claim
	if err := json.Unmarshal(data, &c); err != nil {
		return Claim{}, fmt.Errorf("decoding the subnet claim %s: %w", file, err)
	}
	return c, nil
}
