package csi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	authentication "k8s.io/api/authentication/v1"

	"podd/manifest"
)

// secrets are the values that no message repeats, the longest first: one may be a
// part of another.
type secrets []string

// shortestSecret is one whose value is not found in a text by chance.
const shortestSecret = 4

// secretsOf are those that a driver is told of a volume, nil of none, as it may
// repeat them: whole, line by line, quoted, and of tokens each.
func secretsOf(v *manifest.CSI) secrets {
	var all secrets
	if v == nil {
		return nil
	}
	add := func(text string) {
		quoted := strconv.Quote(text)
		for _, t := range []string{text, strings.TrimSpace(text), quoted[1 : len(quoted)-1]} {
			if len(t) >= shortestSecret {
				all = append(all, t)
			}
		}
	}
	for _, data := range []map[string][]byte{v.StageSecret, v.PublishSecret, v.ExpandSecret} {
		for _, value := range data {
			add(string(value))
			for line := range strings.Lines(string(value)) {
				add(line)
			}
		}
	}
	add(v.Tokens)
	var tokens map[string]authentication.TokenRequestStatus
	_ = json.Unmarshal([]byte(v.Tokens), &tokens) // else it is all one
	for _, t := range tokens {
		add(t.Token)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(all)
}

// redact takes secrets out of a driver's words: some repeat what they were told.
func (all secrets) redact(text string) string {
	for _, s := range all {
		text = strings.ReplaceAll(text, s, "…")
	}
	return text
}
