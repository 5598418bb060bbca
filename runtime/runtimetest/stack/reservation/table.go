package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
)

// A Table stores reservations. Dir and UsedSubnets are required.
type Table struct {
	Dir string // created when it is first used
	// UsedSubnets returns the subnets that are used by anything other than a stack.
	UsedSubnets func() ([]netip.Prefix, error)
	// BeforeFirst is called before Take adds a reservation to an empty table. AfterLast is called
	// after Release has removed the last reservation. The table is locked during both calls. Both
	// may be nil.
	BeforeFirst, AfterLast func() error
}

// Take adds a reservation with a free number and subnet for a stack in dir. state is the path of the
// stack's state file.
func (t *Table) Take(dir, state string, owner Owner) (Reservation, error) {
	unlock, err := t.lock()
	if err != nil {
		return Reservation{}, err
	}
	defer unlock()
	reservations, err := t.read()
	if err != nil {
		return Reservation{}, err
	}
	if len(reservations) == 0 && t.BeforeFirst != nil {
		if err := t.BeforeFirst(); err != nil {
			return Reservation{}, err
		}
	}
	usedSubnets, err := t.UsedSubnets()
	if err != nil {
		return Reservation{}, err
	}
	r, err := choose(dir, reservations, usedSubnets)
	if err != nil {
		return Reservation{}, err
	}
	r.Dir, r.StateFile, r.Owner = dir, state, owner
	return r, t.write(r)
}

// Release releases a reservation. It may be called twice.
func (t *Table) Release(r Reservation) error {
	unlock, err := t.lock()
	if err != nil {
		return err
	}
	defer unlock()
	held, err := t.readReservation(t.reservationFile(r.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != r.Dir {
		return nil
	}
	if err := os.Remove(t.reservationFile(r.Number)); err != nil {
		return fmt.Errorf("releasing subnet %s: %w", r.Subnet, err)
	}
	left, err := t.read()
	if err == nil && len(left) == 0 && t.AfterLast != nil {
		err = t.AfterLast()
	}
	return err
}

// SetOwner changes the owner of a reservation. It returns false if the reservation has been
// released. The zero Owner detaches the reservation, whose state file must exist.
func (t *Table) SetOwner(r Reservation, owner Owner) (exists bool, err error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readReservation(t.reservationFile(r.Number))
	if errors.Is(err, fs.ErrNotExist) || err == nil && held.Dir != r.Dir {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	held.Owner = owner
	return true, t.write(held)
}

// TakeOver makes owner the owner of a stale reservation. It returns false if the reservation is not
// stale. In that case, another process has taken over or released the reservation.
func (t *Table) TakeOver(r Reservation, owner Owner) (isOwner bool, err error) {
	unlock, err := t.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := t.readReservation(t.reservationFile(r.Number))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || held != r || !held.isStale() {
		return false, err
	}
	r.Owner = owner
	return true, t.write(r)
}

// Contains reports whether the table contains a reservation. The owner of the reservation does not
// matter.
func (t *Table) Contains(r Reservation) (exists bool, err error) {
	all, err := t.All()
	for _, held := range all {
		if held.Number == r.Number && held.Dir == r.Dir {
			return true, err
		}
	}
	return false, err
}

// All returns all reservations in the order of their numbers.
func (t *Table) All() ([]Reservation, error) {
	unlock, err := t.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	return t.read()
}

func (t *Table) reservationFile(number int) string {
	return filepath.Join(t.Dir, fmt.Sprintf("%d.json", number))
}

func (t *Table) write(r Reservation) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(t.reservationFile(r.Number), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the reservation of subnet %s: %w", r.Subnet, err)
	}
	return nil
}

func (t *Table) read() ([]Reservation, error) {
	var all []Reservation
	for n := range maxReservations {
		r, err := t.readReservation(t.reservationFile(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (t *Table) readReservation(file string) (Reservation, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Reservation{}, fmt.Errorf("reading a subnet reservation: %w", err)
	}
	var r Reservation
	if err := json.Unmarshal(data, &r); err != nil {
		return Reservation{}, fmt.Errorf("decoding the subnet reservation %s: %w", file, err)
	}
	return r, nil
}
