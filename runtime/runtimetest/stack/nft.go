package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// nftTables lists the tables that the CNI plugins create for the whole host.
var nftTables = []string{"inet cni_plugins_masquerade", "ip cni_hostport", "ip6 cni_hostport"}

// A rule identifies a rule of the CNI plugins, so that nft can delete the rule.
type rule struct{ table, chain, handle string }

// subnets returns the subnets from which pods get addresses.
func (s *Stack) subnets() []netip.Prefix {
	return []netip.Prefix{s.Reservation.Subnet, s.Reservation.Subnet6()}
}

// subnetsContain reports whether one of the subnets contains a.
func subnetsContain(subnets []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(subnets, func(p netip.Prefix) bool { return p.Contains(a) })
}

// listOwnRules returns the rules that contain an address in one of the subnets. Usually the plugins
// remove these rules with the pod. The rules remain if the plugins were not called for the
// removal.
func listOwnRules(ctx context.Context, subnets []netip.Prefix) []rule {
	var all []rule
	for _, table := range nftTables {
		all = append(all, parseRules(table, listTable(ctx, table), subnets)...)
	}
	return all
}

// listTable returns nft's listing of a table. It returns "" if the table does not exist or nft
// is not installed.
func listTable(ctx context.Context, table string) string {
	out, err := exec.CommandContext(ctx, "nft", append([]string{"--numeric", "--handle", "list", "table"}, strings.Fields(table)...)...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// parseRules parses nft's listing of a table. It returns the rules that contain an address in one
// of the subnets, with or without a port.
func parseRules(table, listing string, subnets []netip.Prefix) []rule {
	var all []rule
	chain := ""
	for line := range strings.Lines(listing) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "chain" {
			chain = words[1]
			continue
		}
		text, handle, ok := strings.Cut(line, "# handle ")
		if ok && mentions(text, subnets) {
			all = append(all, rule{table, chain, strings.TrimSpace(handle)})
		}
	}
	return all
}

// mentions reports whether text contains an address in one of the subnets.
func mentions(text string, subnets []netip.Prefix) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		word, _, _ = strings.Cut(word, "/")
		a := parseAddr(word)
		if p, err := netip.ParseAddrPort(word); err == nil {
			a = p.Addr()
		}
		return subnetsContain(subnets, a)
	})
}

// removeRules removes the rules that contain an address in one of the subnets.
func removeRules(ctx context.Context, subnets []netip.Prefix) error {
	var script strings.Builder
	for _, r := range listOwnRules(ctx, subnets) {
		fmt.Fprintf(&script, "delete rule %s %s handle %s\n", r.table, r.chain, r.handle)
	}
	return nft(ctx, script.String())
}

// nft executes a script of nft commands as a transaction. It does nothing for an empty script.
func nft(ctx context.Context, script string) error {
	if script == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running nft on %q: %w: %s", script, err, bytes.TrimSpace(out))
	}
	return nil
}

// removeEmptyTables removes the tables of the CNI plugins that contain no rule of a pod.
func removeEmptyTables() error {
	var errs []error
	for _, table := range nftTables {
		listing := listTable(context.Background(), table)
		if listing != "" && !hasPodRules(listing) {
			errs = append(errs, nft(context.Background(), "delete table "+table+"\n"))
		}
	}
	return errors.Join(errs...)
}

// hasPodRules reports whether a listing contains a rule of a pod: a dnat, masquerade or mark rule
// with the name of the pod in a comment. Rules that the plugins create for the host have no such
// comment.
func hasPodRules(listing string) bool {
	for line := range strings.Lines(listing) {
		rule, _, isRule := strings.Cut(line, "# handle ")
		isHeading := strings.HasPrefix(strings.TrimSpace(line), "chain ") || strings.HasPrefix(line, "table ")
		if isRule && !isHeading && strings.Contains(rule, ` comment "`) {
			return true
		}
	}
	return false
}
