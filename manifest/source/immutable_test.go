package source

import (
	"strings"
	"testing"

	"podd/manifest"
	"podd/manifest/decode"
)

func TestKeepImmutable(t *testing.T) {
	configOf := func(name, data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: " + data + "\n---\n"
	}
	secretOf := func(name, data string) string {
		return strings.NewReplacer("ConfigMap", "Secret", "\ndata", "\nstringData").Replace(configOf(name, data))
	}
	frozen := strings.Replace(configOf("c", "{a: x}"), "\ndata:", "\nimmutable: true\ndata:", 1)
	read := func(text string) *manifest.File {
		return decode.File([]byte(text), decode.Options{Path: "x.yaml"})
	}
	for name, test := range map[string]struct {
		was, is string
		refused bool
	}{
		"the same":     {frozen, frozen + configOf("d", "{}"), false},
		"other data":   {frozen, strings.Replace(frozen, "x}", "y}", 1), true},
		"thawed":       {frozen, configOf("c", "{a: x}"), true},
		"removed":      {frozen, configOf("d", "{}"), false},
		"frozen now":   {configOf("c", "{a: y}"), frozen, false},
		"never frozen": {configOf("c", "{a: y}"), configOf("c", "{a: x}"), false},
		"a secret's":   {strings.Replace(secretOf("c", "{a: x}"), "stringData", "immutable: true\nstringData", 1), secretOf("c", "{a: hunter2}"), true},
	} {
		f := checkImmutable(read(test.is), read(test.was))
		if f.Refused() != test.refused {
			t.Errorf("%s: refused %v, want %v: %v", name, f.Refused(), test.refused, f.Problems)
		}
		for _, p := range f.Problems {
			if strings.Contains(p.String(), "hunter2") {
				t.Errorf("%s: %s", name, p)
			}
		}
	}
}
