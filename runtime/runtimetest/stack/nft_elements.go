package stack

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// crioTables lists the tables that CRI-O creates for the whole host. The rules in these tables are
// the same for all pods. The maps and sets in the tables contain elements for each pod.
var crioTables = []string{"ip crio-hostports", "ip6 crio-hostports"}

// An element identifies an element of a map or set, so that nft can delete the element.
type element struct{ table, set, key string }

// listOwnElements returns the elements that contain an address in one of the subnets.
func listOwnElements(ctx context.Context, subnets []netip.Prefix) []element {
	var all []element
	for _, table := range crioTables {
		all = append(all, parseElements(table, listTable(ctx, table), subnets)...)
	}
	return all
}

var (
	setPattern      = regexp.MustCompile(`(?ms)^\s*(?:map|set) (\S+) \{.*?^\s*\}$`)
	elementsPattern = regexp.MustCompile(`(?s)elements = \{(.*?)\}`)
)

// parseElements parses nft's listing of a table. It returns the elements that contain an address in
// one of the subnets. An element is "KEY" or "KEY : VALUE", and a comment may follow the key.
func parseElements(table, listing string, subnets []netip.Prefix) []element {
	var all []element
	for _, set := range setPattern.FindAllStringSubmatch(listing, -1) {
		elements := elementsPattern.FindStringSubmatch(set[0])
		if elements == nil {
			continue
		}
		for text := range strings.SplitSeq(elements[1], ",") {
			key, _, _ := strings.Cut(text, " : ")
			key, _, _ = strings.Cut(key, ` comment "`)
			if mentions(text, subnets) {
				all = append(all, element{table, set[1], strings.TrimSpace(key)})
			}
		}
	}
	return all
}

// removeElements removes the elements that contain an address in one of the subnets.
func removeElements(ctx context.Context, subnets []netip.Prefix) error {
	var script strings.Builder
	for _, e := range listOwnElements(ctx, subnets) {
		fmt.Fprintf(&script, "delete element %s %s { %s }\n", e.table, e.set, e.key)
	}
	return nft(ctx, script.String())
}

// removeEmptyCRIOTables removes CRI-O's tables that contain no elements.
func removeEmptyCRIOTables() error {
	var errs []error
	for _, table := range crioTables {
		listing := listTable(context.Background(), table)
		if listing != "" && !elementsPattern.MatchString(listing) {
			errs = append(errs, nft(context.Background(), "delete table "+table+"\n"))
		}
	}
	return errors.Join(errs...)
}
