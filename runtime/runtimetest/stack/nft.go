package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// nftTables are the tables that the CNI plugins make, for all of the host.
var nftTables = []string{"inet cni_plugins_masquerade", "ip cni_hostport"}

// rule is one rule of the CNI plugins, as nft names it for deletion.
type rule struct{ table, chain, handle string }

// ownRules lists the rules about addresses of a subnet. Normally the plugins
// remove them with the pod; they stay when that was never told to them.
func ownRules(ctx context.Context, subnet netip.Prefix) []rule {
	var all []rule
	for _, table := range nftTables {
		all = append(all, parseRules(table, listTable(ctx, table), subnet)...)
	}
	return all
}

// listTable prints a table; nothing if there is no such table or no nft.
func listTable(ctx context.Context, table string) string {
	out, err := exec.CommandContext(ctx, "nft", append([]string{"--numeric", "--handle", "list", "table"}, strings.Fields(table)...)...).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// parseRules finds in nft's listing of a table the rules with an address of
// subnet, alone or with a port behind it.
func parseRules(table, listing string, subnet netip.Prefix) []rule {
	var all []rule
	chain := ""
	for line := range strings.Lines(listing) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "chain" {
			chain = words[1]
			continue
		}
		text, handle, ok := strings.Cut(line, "# handle ")
		if ok && mentions(text, subnet) {
			all = append(all, rule{table, chain, strings.TrimSpace(handle)})
		}
	}
	return all
}

func mentions(text string, subnet netip.Prefix) bool {
	for _, word := range strings.Fields(text) {
		host, _, _ := strings.Cut(word, ":")
		host, _, _ = strings.Cut(host, "/")
		if a, err := netip.ParseAddr(host); err == nil && subnet.Contains(a) {
			return true
		}
	}
	return false
}

func removeRules(ctx context.Context, subnet netip.Prefix) error {
	var script strings.Builder
	for _, r := range ownRules(ctx, subnet) {
		fmt.Fprintf(&script, "delete rule %s %s handle %s\n", r.table, r.chain, r.handle)
	}
	return nft(ctx, script.String())
}

// nft runs a script of commands, all or none; an empty one does nothing.
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

// removeEmptyTables removes the tables of the CNI plugins that have no rule
// about any pod, that is none with a dnat, masquerade or mark of its own.
func removeEmptyTables() error {
	var errs []error
	for _, table := range nftTables {
		listing := listTable(context.Background(), table)
		if listing != "" && !hasPods(listing) {
			errs = append(errs, nft(context.Background(), "delete table "+table+"\n"))
		}
	}
	return errors.Join(errs...)
}

// hasPods reports whether a listing has a rule of a pod: those carry the
// pod's name in a comment, the plugins' own framework of rules has none.
func hasPods(listing string) bool {
	for line := range strings.Lines(listing) {
		rule, _, isRule := strings.Cut(line, "# handle ")
		heading := strings.HasPrefix(strings.TrimSpace(line), "chain ") || strings.HasPrefix(line, "table ")
		if isRule && !heading && strings.Contains(rule, ` comment "`) {
			return true
		}
	}
	return false
}
