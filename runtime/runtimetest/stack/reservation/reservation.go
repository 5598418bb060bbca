// Package reservation reserves resources of a host that stacks must not share: a number, and with
// it a bridge name and a subnet.
//
// A [Table] is a directory with one file per reservation. Any number of processes may use a table
// concurrently, because it is locked while a reservation is read or written. A reservation remains
// after its process has exited. If the owner of a reservation does not run, another process may
// clean up and release the reservation.
package reservation

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
)

// maxReservations is the maximum number of reservations in a table.
const maxReservations = 64

// A Reservation contains the resources that are reserved for one stack.
type Reservation struct {
	Number    int          // at least 0 and less than maxReservations
	Subnet    netip.Prefix // a /22 subnet, for 1,021 pods
	Dir       string       // the directory of the stack
	StateFile string       // path of a file that exists while a detached stack exists
	Owner     Owner        // the process that destroys the stack; zero if the stack is detached
}

// Bridge returns the name of the reservation's network bridge, and of its CNI network.
func (r Reservation) Bridge() string { return fmt.Sprintf("podds%d", r.Number) }

// Subnet6 returns the IPv6 subnet of a dual-stack stack. It is a /64 of a site-local prefix that
// only stacks use.
func (r Reservation) Subnet6() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 'p', 'o', 'd', 'd', 7: byte(r.Number)}), 64)
}

// CgroupParent returns the cgroup for the pods of tests.
func (r Reservation) CgroupParent() string { return fmt.Sprintf("/podd-stack-%d", r.Number) }

// isStale reports whether no process will release the reservation. A reservation is stale if its
// owner has exited. A detached reservation is stale if its state file does not exist, for example
// because the directory was removed.
func (r Reservation) isStale() bool {
	if r.Owner != (Owner{}) {
		return !r.Owner.IsAlive()
	}
	_, err := os.Stat(r.StateFile)
	return errors.Is(err, fs.ErrNotExist)
}

// choose returns a reservation with the lowest free number whose subnet overlaps none of
// usedSubnets. Each number has two possible subnets. The second subnet is used only if the first
// subnets of all free numbers overlap usedSubnets.
func choose(dir string, reservations []Reservation, usedSubnets []netip.Prefix) (Reservation, error) {
	for _, second := range []byte{88, 188} {
	number:
		for n := range maxReservations {
			r := Reservation{Number: n, Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, byte(4 * n), 0}), 22)}
			for _, t := range reservations {
				if t.Number == n {
					continue number
				}
			}
			for _, u := range usedSubnets {
				if u.Overlaps(r.Subnet) {
					continue number
				}
			}
			return r, nil
		}
	}
	return Reservation{}, fmt.Errorf("choosing a subnet for %s: all of 10.88.0.0/16 and 10.188.0.0/16 are in use", dir)
}
