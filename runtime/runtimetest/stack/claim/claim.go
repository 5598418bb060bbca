// Package claim reserves resources of a host that stacks must not share: a number, and with
// it a bridge name and a subnet.
//
// A [Table] is a directory with one file per reservation. Any number of processes may use a
// table concurrently, because it is locked while a reservation is read or written. A
// reservation outlives its process. A process that finds a reservation without a running
// owner may clean up and release it.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
)

// maxClaims is the maximum number of claims in a table.
const maxClaims = 128

// A Claim is the reservation of one stack.
type Claim struct {
	Number    int          // from 0 to the maximum number of claims minus 1
	Subnet    netip.Prefix // /24 from which pods get their addresses
	Dir       string       // the directory of the stack
	StateFile string       // path of a file that exists as long as a detached stack is intact
	Owner     Owner        // the process that destroys the stack; zero if the stack is detached
}

// Bridge returns the name of the claim's network bridge, and of its CNI network.
func (c Claim) Bridge() string { return fmt.Sprintf("podds%d", c.Number) }

// Subnet6 returns the IPv6 subnet of a dual-stack stack, a /64 of a
// site-local prefix that is not used otherwise.
func (c Claim) Subnet6() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 'p', 'o', 'd', 'd', 7: byte(c.Number)}), 64)
}

// CgroupParent returns the cgroup for the pods of tests.
func (c Claim) CgroupParent() string { return fmt.Sprintf("/podd-stack-%d", c.Number) }

// isStale reports whether no process will release the claim. This is the case if its owner has
// exited. It is also the case if the claim is detached and its state file does not exist, for
// example because the directory was removed.
func (c Claim) isStale() bool {
	if c.Owner != (Owner{}) {
		return !c.Owner.IsAlive()
	}
	_, err := os.Stat(c.StateFile)
	return errors.Is(err, fs.ErrNotExist)
}

// choose returns a claim with the lowest free number whose subnet overlaps no subnet in use.
// Each number has two subnets, and the second is for hosts on which the first is in use.
func choose(dir string, taken []Claim, used []netip.Prefix) (Claim, error) {
	for _, second := range []byte{88, 188} {
	number:
		for n := range maxClaims {
			c := Claim{Number: n, Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, byte(n), 0}), 24)}
			for _, t := range taken {
				if t.Number == n {
					continue number
				}
			}
			for _, u := range used {
				if u.Overlaps(c.Subnet) {
					continue number
				}
			}
			return c, nil
		}
	}
	return Claim{}, fmt.Errorf("choosing a subnet for %s: all of 10.88.0.0/17 and 10.188.0.0/17 are in use", dir)
}
