package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/clustertest"
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
		"missing kubeconfig":    {kubeconfigErr, invalidKubeconfig, "reading --kubeconfig /none: "},
		"pending request":       {credential.PendingError{}, csrPending, "is waiting for approval"},
		"rejected request":      {credential.RejectedError{}, csrRejected, "podd creates another certificate signing request later"},
		"expired certificate":   {credential.ClockError{}, csrRejected, "correct the clock of this host or of the cluster"},
		"unwritable --cert-dir": {storageError(t), fileFailure, "creating the key of a certificate signing request in /dev/null/pki: "},
	} {
		if got := newProblem(c.err); got.kind != c.kind || !strings.Contains(got.message, c.want) {
			t.Errorf("%s: got kind %d, message %q; want kind %d and a message that contains %q", name, got.kind, got.message, c.kind, c.want)
		}
	}
}

// storageError returns the error of a request for a certificate that cannot be stored.
func storageError(t *testing.T) (err error) {
	m := &credential.Manager{Config: credential.Config{CertDir: "/dev/null/pki"}, NodeName: "n1", Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	addresses := func() []v1.NodeAddress { return []v1.NodeAddress{{Type: v1.NodeHostName, Address: "n1"}} }
	report := func(_ context.Context, reported error) {
		err = reported
		cancel() // ends Run
	}
	m.NewServingRenewer(nil, &credential.Identity{}, addresses, report).Run(ctx)
	return err
}

// TestNewProblem_Secrets checks that the messages about random changes of a kubeconfig contain no secrets.
func TestNewProblem_Secrets(t *testing.T) {
	m := &credential.Manager{Config: credential.Config{Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}, Client: apiserver.Options{ContentType: "application/json"}}
	rapid.Check(t, func(t *rapid.T) {
		text := clustertest.Kubeconfig
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		to := min(len(text), from+rapid.IntRange(0, 20).Draw(t, "length"))
		with := rapid.SampledFrom([]string{"", "\n", ":", "{", "\"", "- ", "\t", "0x1"}).Draw(t, "with")
		if err := os.WriteFile(m.Kubeconfig, []byte(text[:from]+with+text[to:]), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := m.NewClient()
		if got := newProblem(err); strings.Contains(got.message, "hunter2") || err != nil && got.kind != invalidKubeconfig {
			t.Fatalf("error %v: got kind %d, message %q; want kind %d and a message without \"hunter2\"", err, got.kind, got.message, invalidKubeconfig)
		}
	})
}

// TestDescribeError checks that the message contains the cause and the remedy, but no notice about retries.
func TestDescribeError(t *testing.T) {
	unauthorized := apierrors.NewGenericServerResponse(http.StatusUnauthorized, "get", v1.Resource("nodes"), "n1", "", 0, true)
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"no error":     {nil, ""},
		"timeout":      {context.DeadlineExceeded, "no response from the cluster within " + apiserver.RequestTimeout.String()},
		"host":         {(&apiserver.Client{Host: "https://api:6443"}).WithHost(context.DeadlineExceeded), "no response from the cluster at https://api:6443 within " + apiserver.RequestTimeout.String()},
		"unauthorized": {unauthorized, "the cluster rejects the credential of the kubeconfig (401 Unauthorized): its certificate or token is invalid or has expired"},
		"other error":  {errors.New("broken"), "the cluster: broken"},
	} {
		if got := describeError(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
