package manifest

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestIsSafeUID(t *testing.T) {
	long := strings.Repeat("a", 63)
	for uid, want := range map[types.UID]bool{
		"a": true, "0": true, "-": true, "Az9-": true, types.UID(long): true,
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "a_b": false, "a\n": false, "é": false, "a\x00": false,
		types.UID(long + "a"): false,
	} {
		if got := IsSafeUID(uid); got != want {
			t.Errorf("IsSafeUID(%q): got %v, want %v", uid, got, want)
		}
	}
}

func TestIsSafeUID_Property(t *testing.T) {
	safe := regexp.MustCompile(`\A[A-Za-z0-9-]{1,63}\z`)
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9-]{1,70}`)).Draw(t, "uid")
		if got, want := IsSafeUID(types.UID(uid)), safe.MatchString(uid); got != want {
			t.Fatalf("IsSafeUID(%q): got %v, want %v", uid, got, want)
		}
	})
}
