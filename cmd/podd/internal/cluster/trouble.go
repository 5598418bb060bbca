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

// kind of a trouble; others of the same kind are the same to users.
type kind int

const (
	fine        kind = iota
	unreadable       // the kubeconfig
	unreachable      // nobody answers
	stranger         // whoever answers is not the cluster
	unknown          // the cluster does not know podd
	forbidden        // and does not let it
	ill              // it answers that it cannot
	gone             // the Node was deleted
	missing          // there is none, and podd makes none
	waiting          // for what somebody is to do
	refusing         // somebody did not want it
	local            // files
	other
)

type trouble struct {
	kind kind
	text string // for users, with what to do; never a secret
}

// goneError says that somebody took the Node away, missingError that nobody has
// made it, configError that the kubeconfig says nothing of use.
type (
	goneError    struct{ node string }
	missingError struct{ node string }
	configError  struct{ error }
	// waitingError is that a request for a certificate waits for somebody to approve
	// it or, approved, for its signer; refusedError that nobody ever will.
	waitingError struct {
		request  string
		approved bool
	}
	refusedError struct{ request, how, why string }
	fileError    struct{ error } // of podd's own files
	// clockError is that what the cluster gave now is over since then.
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

// atError is of a request made of a host.
type atError struct {
	host string
	err  error
}

func (e atError) Error() string { return e.host + ": " + e.err.Error() }
func (e atError) Unwrap() error { return e.err }

const meanwhile = "; podd tries again every few seconds, and pods of files and URLs run on"

func troubleOf(err error) trouble {
	var (
		at       atError
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
		return trouble{}
	case errors.As(err, &config):
		return trouble{unreadable, config.Error() + meanwhile}
	case errors.As(err, &deleted):
		return trouble{gone, fmt.Sprintf("node %s was deleted from %s; start podd again to have it made anew, or leave --kubeconfig out", deleted.node, where)}
	case errors.As(err, &absent):
		return trouble{missing, fmt.Sprintf("%s has no node %s, and podd makes none with --register-node=false; make it", where, absent.node)}
	case errors.As(err, &waits):
		return trouble{waiting, waits.Error()}
	case errors.As(err, &refused):
		return trouble{refusing, refused.Error() + "; podd asks anew later, and pods of files and URLs run on"}
	case errors.As(err, &clock):
		return trouble{refusing, clock.Error() + meanwhile}
	case errors.As(err, &file):
		return trouble{local, file.Error() + meanwhile}
	case errors.As(err, &status):
		return ofStatusCode(where, status)
	case errors.As(err, &verified):
		return trouble{stranger, fmt.Sprintf("%s shows a certificate that the kubeconfig's authority did not sign: %v%s", where, verified.Err, meanwhile)}
	case late(err):
		return trouble{unreachable, fmt.Sprintf("%s does not answer within %s%s", where, requestTime, meanwhile)}
	}
	var errno syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &errno):
		return trouble{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", where, errno, meanwhile)}
	case errors.As(err, &network):
		return trouble{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", where, cause(err), meanwhile)}
	}
	return trouble{other, fmt.Sprintf("%s: %v%s", where, cause(err), meanwhile)}
}

func ofStatusCode(where string, status apierrors.APIStatus) trouble {
	s := status.Status()
	switch {
	case s.Code == http.StatusUnauthorized:
		return trouble{unknown, where + " does not know who the kubeconfig says podd is: its certificate or token is not, or no longer, good" + meanwhile}
	case s.Code == http.StatusForbidden:
		return trouble{forbidden, fmt.Sprintf("%s forbids it: %s; the kubeconfig's user is to be system:node:NAME, of the group system:nodes%s", where, said(s.Message), meanwhile)}
	}
	return trouble{ill, fmt.Sprintf("%s answers %d: %s%s", where, s.Code, said(s.Message), meanwhile)}
}

// mostSaid bounds what an API server says as users are told it.
const mostSaid = 500

// said is what an API server says, without what a terminal or a log would obey.
func said(text string) string {
	if len(text) > mostSaid {
		text = text[:mostSaid] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// late tells of a request that took too long.
func late(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// answered says that it was the API server that refused.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// cause leaves out the request's line, which says nothing to users.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
