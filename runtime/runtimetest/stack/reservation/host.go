package reservation

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Subnets returns the subnets of the host's interfaces and IPv4 routes, except the default
// route.
func Subnets() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the host's addresses: %w", err)
	}
	var all []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Masked())
		}
	}
	f, err := os.Open("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("listing the host's routes: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if p, ok := parseRoute(lines.Text()); ok && p.Bits() > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

// parseRoute parses the destination in a line of /proc/net/route: address and mask are
// hexadecimal, in the byte order of the host.
func parseRoute(line string) (netip.Prefix, bool) {
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return netip.Prefix{}, false
	}
	address, err1 := hex.DecodeString(fields[1])
	mask, err2 := hex.DecodeString(fields[7])
	if err1 != nil || err2 != nil || len(address) != 4 || len(mask) != 4 {
		return netip.Prefix{}, false
	}
	var a [4]byte
	binary.NativeEndian.PutUint32(a[:], binary.BigEndian.Uint32(address))
	return netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount32(binary.BigEndian.Uint32(mask))), true
}
