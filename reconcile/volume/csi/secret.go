package csi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	authentication "k8s.io/api/authentication/v1"

	"podd/manifest/refs"
)

// secrets contains the values to redact in messages. Longer values come first, because a value may
// be a part of another value.
type secrets []string

// minSecretLength is the minimum length in bytes of a value to redact. Shorter values occur in
// messages by chance.
const minSecretLength = 4

// volumeSecrets returns the secrets in the requests for a volume. It returns nil if v is nil.
// Drivers may repeat a secret in other forms. Therefore the result contains each secret as a whole,
// each line of the secret, its quoted form, and each token.
func volumeSecrets(v *refs.CSIVolume) secrets {
	var values secrets
	if v == nil {
		return nil
	}
	add := func(text string) {
		quoted := strconv.Quote(text)
		for _, t := range []string{text, strings.TrimSpace(text), quoted[1 : len(quoted)-1]} {
			if len(t) >= minSecretLength {
				values = append(values, t)
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
	_ = json.Unmarshal([]byte(v.Tokens), &tokens) // if parsing fails, only the whole text is redacted
	for _, t := range tokens {
		add(t.Token)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(values)
}

// redact replaces the secrets in a message of a driver, because some drivers repeat
// requests.
func (values secrets) redact(text string) string {
	for _, s := range values {
		text = strings.ReplaceAll(text, s, "…")
	}
	return text
}
