// Package claim hands out what exists once on a host and stacks must not
// share: a number, and with it a bridge name and a subnet.
//
// A [Table] is a directory with one file a claim and a lock that is held
// while any of them is read or written, so any number of processes may use
// one at once. A claim outlives the process that took it: whoever finds one
// whose owner is dead may clean up after it and release it.
package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
)

// Numbers is how many claims a table has room for.
const Numbers = 128

// Claim is what one stack has for itself.
type Claim struct {
	Number int          // less than Numbers
	Subnet netip.Prefix // the pods' addresses, a /24
	Dir    string       // the directory of the stack
	State  string       // a file that a detached stack has as long as it is whole
	Owner  Owner        // the process that destroys it; zero once detached
}

// Bridge is the name of the claim's network bridge, and of its CNI network.
func (c Claim) Bridge() string { return fmt.Sprintf("podds%d", c.Number) }

// Subnet6 is that of a stack whose pods have IPv6 addresses too, a /64 of a
// site-local prefix that nobody else has reason to use.
func (c Claim) Subnet6() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 'p', 'o', 'd', 'd', 7: byte(c.Number)}), 64)
}

// CgroupParent is the cgroup below which the pods of tests belong.
func (c Claim) CgroupParent() string { return fmt.Sprintf("/podd-stack-%d", c.Number) }

// Stale reports whether nobody will release the claim: its owner is dead, or
// it is detached and its state gone, as when somebody removed the directory.
func (c Claim) Stale() bool {
	if c.Owner != (Owner{}) {
		return !c.Owner.Alive()
	}
	_, err := os.Stat(c.State)
	return errors.Is(err, fs.ErrNotExist)
}

// pick chooses the lowest number that is not taken and whose subnet overlaps
// none in use. The second row of subnets is for hosts that use the first one.
func pick(dir string, taken []Claim, used []netip.Prefix) (Claim, error) {
	for _, second := range []byte{88, 188} {
	number:
		for n := range Numbers {
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
