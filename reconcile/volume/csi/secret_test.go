package csi

import "testing"

// TestRedact checks that secrets are redacted in all forms in which a driver may repeat
// them.
func TestRedact(t *testing.T) {
	v := newVolume(pod1)
	v.CSIVolume.StageSecret = map[string][]byte{"a": []byte("pass"), "b": []byte("password"), "c": []byte("trailing\n"), "key": []byte("-----BEGIN-----\nMIIEow\n-----END-----\n"), "short": []byte("ab")}
	v.CSIVolume.Tokens = `{"vault":{"token":"eyJ.one","expirationTimestamp":"2030-01-01T00:00:00Z"},"":{"token":"eyJ.two","expirationTimestamp":null}}`
	all := volumeSecrets(v.CSIVolume)
	for text, want := range map[string]string{
		"denied for pass":                    "denied for …",
		"denied for password":                "denied for …",
		"denied for 'trailing'":              "denied for '…'",
		"no key in line MIIEow":              "no key in line …",
		`no key "-----BEGIN-----\nMIIEow\n"`: `no key "……"`,
		"bad token eyJ.one for vault":        "bad token … for vault",
		"bad token eyJ.two":                  "bad token …",
		"bad " + v.Tokens:                    "bad …",
		"absent":                             "absent",
	} {
		if got := all.redact(text); got != want {
			t.Errorf("redact(%q): got %q, want %q", text, got, want)
		}
	}
	if got := volumeSecrets(nil).redact("a"); got != "a" {
		t.Errorf("without secrets: redact(\"a\"): got %q, want \"a\"", got)
	}
}
