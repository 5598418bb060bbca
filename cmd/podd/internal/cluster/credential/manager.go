package credential

import (
	"context"
	"log/slog"
	"time"

	"podd/cmd/podd/internal/cluster/apiserver"
)

// Config describes the credentials of the node. BootstrapKubeconfig and RotateCertificates are
// optional.
type Config struct {
	Kubeconfig string // path of the kubeconfig
	// BootstrapKubeconfig is the path of a kubeconfig. If Kubeconfig has no valid credential,
	// podd requests a client certificate with BootstrapKubeconfig and writes Kubeconfig. ""
	// disables this.
	BootstrapKubeconfig string
	// CertDir is the directory of the certificates that podd requests. If RotateCertificates is
	// set, podd renews the client certificate.
	CertDir            string
	RotateCertificates bool
	// OnRenewal is called after each attempt to obtain a certificate, with the error of the
	// attempt. serving is true for the serving certificate and false for the client certificate.
	// issued is the NotBefore time of the previous certificate, or zero. OnRenewal may be called
	// concurrently. It may be nil.
	OnRenewal func(serving bool, issued time.Time, err error)
}

// A Manager creates clients with the credential in the kubeconfig, and requests and renews the
// certificates of the node. All fields except the optional ones of Config are required. Bootstrap and
// NewClient must not be called concurrently; the other methods are safe for concurrent use.
type Manager struct {
	Config
	NodeName string            // name of the Node
	Client   apiserver.Options // configures the clients of the Manager
	Log      *slog.Logger
}

// A ReportFunc receives the result of an attempt to obtain a credential; nil is a success. It may block
// until the result is received or ctx is done.
type ReportFunc func(ctx context.Context, err error)
