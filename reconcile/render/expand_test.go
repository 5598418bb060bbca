package render

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestExpand checks the expansion of references, escapes and incomplete references.
func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "B": "$(A)", "EMPTY": "", "a.b-c": "dots", "with space": "w"}
	tests := []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"$(A)", "1"},
		{"x$(A)y$(A)z", "x1y1z"},
		{"$(B)", "$(A)"}, // values are not expanded again
		{"$(EMPTY)", ""},
		{"$(UNKNOWN)", "$(UNKNOWN)"},
		{"$()", "$()"},
		{"$(a.b-c) $(with space)", "dots w"},
		{"$$(A)", "$(A)"},
		{"$$$(A)", "$1"},
		{"$$$$(A)", "$$(A)"},
		{"$$", "$"},
		{"$", "$"},
		{"$A", "$A"},
		{"${A}", "${A}"},
		{"a$", "a$"},
		{"$(A", "$(A"},
		{"$(", "$("},
		{"$($(A)", "$($(A)"}, // the name is "$(A"
		{"$((A))", "$((A))"},
		{"$(A))", "1)"},
		{"$(A$$", "$(A$"},
		{"$ü$(A)", "$ü1"},
		{"--flag=$(A)/$(NOPE)/$$(A)", "--flag=1/$(NOPE)/$(A)"},
	}
	for _, tt := range tests {
		if got := Expand(tt.in, mapLookup(vars)); got != tt.want {
			t.Errorf("Expand(%q): got %q, want %q", tt.in, got, tt.want)
		}
	}
}

func mapLookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// pieces generates texts with many special characters of Expand.
func pieces() *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{"$", "(", ")", "A", "B", "NOPE", "$(A)", "$(B)", "$$", "$(", "ü", " ", "x"})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "")
	})
}

// TestExpandModel compares Expand with a state machine that reads one byte at a time.
func TestExpandModel(t *testing.T) {
	vars := map[string]string{"A": "one", "B": "$(A)$$"}
	rapid.Check(t, func(t *rapid.T) {
		in := pieces().Draw(t, "in")
		if got, want := Expand(in, mapLookup(vars)), expandModel(in, vars); got != want {
			t.Fatalf("Expand(%q): got %q, want %q", in, got, want)
		}
	})
}

func expandModel(in string, vars map[string]string) string {
	out, i := []byte{}, 0
	for i < len(in) {
		if in[i] != '$' || i+1 == len(in) {
			out, i = append(out, in[i]), i+1
			continue
		}
		if in[i+1] == '$' {
			out, i = append(out, '$'), i+2
			continue
		}
		end := strings.IndexByte(in[i:], ')')
		if in[i+1] != '(' || end < 0 {
			out, i = append(out, '$'), i+1
			continue
		}
		ref := in[i : i+end+1]
		if v, ok := vars[ref[2:len(ref)-1]]; ok {
			ref = v
		}
		out, i = append(out, ref...), i+end+1
	}
	return string(out)
}

// TestExpandLaws checks that escaped texts, and texts without references, are not expanded.
func TestExpandLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.OneOf(pieces(), rapid.String()).Draw(t, "in")
		none := mapLookup(nil)
		if got := Expand(strings.ReplaceAll(in, "$", "$$"), none); got != in {
			t.Fatalf("escaped %q: got %q, want it unchanged", in, got)
		}
		if plain := strings.ReplaceAll(in, "$", ""); Expand(plain, none) != plain {
			t.Fatalf("%q has no reference: got %q, want it unchanged", plain, Expand(plain, none))
		}
		if !strings.Contains(in, "$$") && Expand(in, none) != in {
			t.Fatalf("%q without variables: got %q, want it unchanged", in, Expand(in, none))
		}
	})
}

// FuzzExpand compares Expand with the model.
func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B)$($", "v")
	f.Fuzz(func(t *testing.T, in, value string) {
		vars := map[string]string{"A": value}
		if got, want := Expand(in, mapLookup(vars)), expandModel(in, vars); got != want {
			t.Errorf("Expand(%q): got %q, want %q", in, got, want)
		}
	})
}
