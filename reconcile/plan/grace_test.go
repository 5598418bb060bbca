package plan

import (
	"testing"
	"time"

	"podd/runtime"
)

// TestGraceOf checks the grace periods of all values that the annotation can have.
func TestGraceOf(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 30 * time.Second, "-1": 30 * time.Second, "x": 30 * time.Second,
		"0": 0, "5": 5 * time.Second,
		"2147483648":          2147483648 * time.Second,
		"9223372036":          MaxGrace,
		"9223372036854775807": MaxGrace,
	} {
		inc := &runtime.Incarnation{Sandbox: runtime.Sandbox{Annotations: map[string]string{runtime.AnnotationGracePeriod: text}}}
		if got := graceOf(inc); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
