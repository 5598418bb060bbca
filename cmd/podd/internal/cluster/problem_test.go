package cluster

import (
	"strings"
	"testing"

	"podd/cmd/podd/internal/cluster/credential"
)

// TestNewProblem_Credential checks the kinds and messages of errors of package credential.
func TestNewProblem_Credential(t *testing.T) {
	_, _, kubeconfigErr := (&credential.Manager{Config: credential.Config{Kubeconfig: "/none"}}).NewClient()
	for name, c := range map[string]struct {
		err  error
		kind problemKind
		want string // part of the message
	}{
		"missing kubeconfig":  {kubeconfigErr, invalidKubeconfig, "reading --kubeconfig /none: "},
		"pending request":     {credential.PendingError{}, csrPending, "is waiting for approval"},
		"rejected request":    {credential.RejectedError{}, csrRejected, "podd creates another certificate signing request later"},
		"expired certificate": {credential.ClockError{}, csrRejected, "correct the clock of this host or of the cluster"},
	} {
		if got := newProblem(c.err); got.kind != c.kind || !strings.Contains(got.message, c.want) {
			t.Errorf("%s: got kind %d, message %q; want kind %d and a message that contains %q", name, got.kind, got.message, c.kind, c.want)
		}
	}
}
