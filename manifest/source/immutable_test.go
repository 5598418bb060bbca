package source

import (
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
)

// TestCheckImmutable checks which edits of ConfigMaps and Secrets are refused.
func TestCheckImmutable(t *testing.T) {
	configOf := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: " + data + "\n---\n"
	}
	secretOf := func(name, data string) string {
		return strings.NewReplacer("ConfigMap", "Secret", "\ndata", "\nstringData").Replace(configOf(name, data))
	}
	immutable := strings.Replace(configOf("c", "{a: x}"), "\ndata:", "\nimmutable: true\ndata:", 1)
	read := func(text string) *manifest.File {
		return decode.File([]byte(text), decode.Options{Path: "x.yaml"})
	}
	for name, test := range map[string]struct {
		before, after string
		refused       bool
	}{
		"the same":          {immutable, immutable + configOf("d", "{}"), false},
		"other data":        {immutable, strings.Replace(immutable, "x}", "y}", 1), true},
		"not immutable now": {immutable, configOf("c", "{a: x}"), true},
		"removed":           {immutable, configOf("d", "{}"), false},
		"immutable now":     {configOf("c", "{a: y}"), immutable, false},
		"never immutable":   {configOf("c", "{a: y}"), configOf("c", "{a: x}"), false},
		"a Secret":          {strings.Replace(secretOf("c", "{a: x}"), "stringData", "immutable: true\nstringData", 1), secretOf("c", "{a: hunter2}"), true},
	} {
		f := checkImmutable(read(test.after), read(test.before))
		if f.HasRefusedDocument() != test.refused {
			t.Errorf("%s: HasRefusedDocument: got %v, want %v; problems: %v", name, f.HasRefusedDocument(), test.refused, f.Problems)
		}
		for _, p := range f.Problems {
			if strings.Contains(p.String(), "hunter2") {
				t.Errorf("%s: got problem %s, want a message without the value", name, p)
			}
		}
	}
}
