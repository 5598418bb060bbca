package render

import (
	"net/netip"
	"slices"
	"strings"
)

// Limits of resolvers: glibc uses three name servers, and versions before 2.26 truncate
// longer search lists.
const (
	maxNameservers      = 3
	maxSearches         = 32
	maxSearchChars      = 2048
	maxSearchPathLength = 253 // because of a longer name, some resolvers abort
	maxResolvConfLen    = 10 << 20
)

// DNS is a resolver configuration, the content of a resolv.conf. The zero value has no servers.
// Resolvers then query the local host.
type DNS struct {
	Servers  []string
	Searches []string
	Options  []string
}

// ParseResolvConf parses a resolv.conf(5). It uses all nameserver lines, the last of the search and
// domain lines, and the last value of each option. It ignores comments, unknown keywords and
// invalid addresses, so that there is no error. It does not apply the limits of resolvers, because
// a pod may have servers that precede those of the file.
func ParseResolvConf(text string) DNS {
	var d DNS
	if len(text) > maxResolvConfLen {
		text = text[:maxResolvConfLen]
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if _, err := netip.ParseAddr(fields[1]); err == nil {
				d.Servers = append(d.Servers, fields[1])
			}
		case "domain":
			d.Searches = cleanSearchPaths(fields[1:2])
		case "search":
			d.Searches = cleanSearchPaths(fields[1:])
		case "options":
			for _, o := range fields[1:] {
				d.Options = setOption(d.Options, o)
			}
		}
	}
	return d
}

// cleanSearchPaths removes trailing dots, so that equal domains have the same form. It also removes
// the root domain ".", because every resolver tries it anyway.
func cleanSearchPaths(words []string) []string {
	var paths []string
	for _, w := range words {
		if w = strings.TrimRight(w, "."); w != "" {
			paths = append(paths, w)
		}
	}
	return paths
}

// setOption replaces the option of the same name or appends it.
func setOption(options []string, option string) []string {
	name := optionName(option)
	i := slices.IndexFunc(options, func(o string) bool { return optionName(o) == name })
	if i < 0 {
		return append(options, option)
	}
	options[i] = option
	return options
}

func optionName(option string) string {
	name, _, _ := strings.Cut(option, ":")
	return name
}
