package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A kind groups problems that are the same for users.
type kind int

const (
	fine        kind = iota
	unreadable       // the kubeconfig is invalid
	unreachable      // no response
	stranger         // the server is not trusted
	unknown          // 401
	forbidden        // 403
	ill              // any other error status
	gone             // the Node was deleted
	missing          // there is no Node, and podd does not create it
	waiting          // for an approval or signer
	refusing         // a request was rejected
	local            // files of podd
	other
)

type problem struct {
	kind kind
	text string // for users, with the remedy; without secrets
}

// goneError is the error if the Node was deleted, missingError if it was never created,
// and configError if the kubeconfig is invalid.
type (
	goneError    struct{ node string }
	missingError struct{ node string }
	configError  struct{ error }
	// waitingError is the error of a pending or approved certificate signing request;
	// refusedError that of a rejected one.
	waitingError struct {
		request  string
		approved bool
	}
	refusedError struct{ request, how, why string }
	fileError    struct{ error } // of podd's own files
	// clockError is the error of a new certificate that has already expired.
	clockError struct{ since time.Time }
)

func (e goneError) Error() string    { return "node " + e.node + " was deleted" }
func (e missingError) Error() string { return "there is no node " + e.node }

func (e waitingError) Error() string {
	if e.approved {
		return "certificate signing request " + e.request + " is approved and waits for its signer, which is kube-controller-manager unless the cluster has another"
	}
	return fmt.Sprintf("certificate signing request %s waits for approval: kubectl certificate approve %[1]s", e.request)
}

func (e clockError) Error() string {
	return fmt.Sprintf("the certificate that the cluster gave now is over since %s by this machine's clock; set that, or the cluster's", e.since.UTC().Format(time.RFC3339))
}

func (e refusedError) Error() string {
	text := fmt.Sprintf("certificate signing request %s %s", e.request, map[string]string{
		"denied": "was denied", "failed": "has failed", "spoilt": "got what is no certificate for podd's key",
	}[e.how])
	if e.why != "" {
		text += ": " + e.why
	}
	return text
}

// A hostError is the error of a request to a host.
type hostError struct {
	host string
	err  error
}

func (e hostError) Error() string { return e.host + ": " + e.err.Error() }
func (e hostError) Unwrap() error { return e.err }

const retryNotice = "; podd tries again every few seconds, and pods of files and URLs run on"

func newProblem(err error) problem {
	var (
		at       hostError
		config   configError
		deleted  goneError
		absent   missingError
		waits    waitingError
		refused  refusedError
		file     fileError
		clock    clockError
		status   apierrors.APIStatus
		verified *tls.CertificateVerificationError
	)
	where := "the cluster"
	if errors.As(err, &at) {
		where += " at " + at.host
	}
	switch {
	case err == nil:
		return problem{}
	case errors.As(err, &config):
		return problem{unreadable, config.Error() + retryNotice}
	case errors.As(err, &deleted):
		return problem{gone, fmt.Sprintf("node %s was deleted from %s; start podd again to have it made anew, or leave --kubeconfig out", deleted.node, where)}
	case errors.As(err, &absent):
		return problem{missing, fmt.Sprintf("%s has no node %s, and podd makes none with --register-node=false; make it", where, absent.node)}
	case errors.As(err, &waits):
		return problem{waiting, waits.Error()}
	case errors.As(err, &refused):
		return problem{refusing, refused.Error() + "; podd asks anew later, and pods of files and URLs run on"}
	case errors.As(err, &clock):
		return problem{refusing, clock.Error() + retryNotice}
	case errors.As(err, &file):
		return problem{local, file.Error() + retryNotice}
	case errors.As(err, &status):
		return statusProblem(where, status)
	case errors.As(err, &verified):
		return problem{stranger, fmt.Sprintf("%s shows a certificate that the kubeconfig's authority did not sign: %v%s", where, verified.Err, retryNotice)}
	case isTimeout(err):
		return problem{unreachable, fmt.Sprintf("%s does not answer within %s%s", where, requestTime, retryNotice)}
	}
	var errno syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &errno):
		return problem{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", where, errno, retryNotice)}
	case errors.As(err, &network):
		return problem{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", where, cause(err), retryNotice)}
	}
	return problem{other, fmt.Sprintf("%s: %v%s", where, cause(err), retryNotice)}
}

func statusProblem(where string, status apierrors.APIStatus) problem {
	s := status.Status()
	switch {
	case s.Code == http.StatusUnauthorized:
		return problem{unknown, where + " does not know who the kubeconfig says podd is: its certificate or token is not, or no longer, good" + retryNotice}
	case s.Code == http.StatusForbidden:
		return problem{forbidden, fmt.Sprintf("%s forbids it: %s; the kubeconfig's user is to be system:node:NAME, of the group system:nodes%s", where, sanitize(s.Message), retryNotice)}
	}
	return problem{ill, fmt.Sprintf("%s answers %d: %s%s", where, s.Code, sanitize(s.Message), retryNotice)}
}

// maxMessage limits messages of the API server.
const maxMessage = 500

// sanitize shortens a message of the API server and replaces control characters.
func sanitize(text string) string {
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// isTimeout reports whether err is a timeout.
func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// isAPIError reports whether err is a response of the API server.
func isAPIError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// cause removes the request line from an error.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
