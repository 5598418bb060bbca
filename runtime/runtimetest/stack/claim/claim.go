// Package claim reserves resources of a host that stacks must not share: a number, and with
// it a bridge name and a subnet.
//
// A [Table] is a directory with one file per reservation. Any number of processes may use a table
// concurrently, because it is locked while a reservation is read or written. A reservation remains
// after its process has exited. If the owner of a reservation does not run, another process may
// clean up and release the reservation.
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
	Number    int          // at least 0 and less than maxClaims
	Subnet    netip.Prefix // /24 from which pods get their addresses
	Dir       string       // the directory of the stack
	StateFile string       // path of a file that exists while a detached stack exists
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

// isStale reports whether no process will release the claim. A claim is stale if its owner has
// exited. A detached claim is stale if its state file does not exist, for example because the
// directory was removed.
func (c Claim) isStale() bool {
	if c.Owner != (Owner{}) {
		return !c.Owner.IsAlive()
	}
	_, err := os.Stat(c.StateFile)
	return errors.Is(err, fs.ErrNotExist)
}

// choose returns a claim with the lowest free number whose subnet overlaps no subnet in use. Each
// number has two possible subnets. The second is used only if the first subnets of all free numbers
// are in use.
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
