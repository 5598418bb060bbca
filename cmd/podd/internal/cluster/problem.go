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

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/cmd/podd/internal/cluster/apiserver"
	"podd/cmd/podd/internal/cluster/credential"
	"podd/cmd/podd/internal/cluster/nodesync"
)

// A problemKind is the cause of a problem from the point of view of a user.
type problemKind int

const (
	noProblem         problemKind = iota
	invalidKubeconfig             // the kubeconfig is invalid
	unreachable                   // no response from the API server
	untrusted                     // the certificate of the server is not trusted
	unauthorized                  // status 401: the credential is invalid
	forbidden                     // status 403: the user may not make a request
	serverError                   // any other error status
	nodeDeleted                   // the Node was deleted
	nodeMissing                   // the Node does not exist, and podd does not create it
	csrPending                    // a certificate signing request is not approved or signed yet
	csrRejected                   // a certificate signing request was rejected
	fileFailure                   // reading or writing a file failed
	otherProblem
)

// A problem describes a failure of the connection to users. The zero problem means that there is no
// failure.
type problem struct {
	kind    problemKind
	message string // message for users; contains the remedy and no secrets
}

// retryNotice is appended to the message of a problem that a retry may solve.
const retryNotice = "; podd retries every few seconds, and pods from files and URLs keep running"

// newProblem returns the problem that describes err to users. It returns the zero problem if err is
// nil.
func newProblem(err error) problem {
	var (
		hostErr       apiserver.HostError
		kubeconfigErr credential.KubeconfigError
		deletedNode   nodesync.DeletedError
		missingNode   nodesync.MissingError
		pendingCSR    credential.PendingError
		rejectedCSR   credential.RejectedError
		fileErr       credential.FileError
		clockErr      credential.ClockError
		status        apierrors.APIStatus
		verifyErr     *tls.CertificateVerificationError
	)
	apiServer := "the cluster"
	if errors.As(err, &hostErr) {
		apiServer += " at " + hostErr.Host
	}
	switch {
	case err == nil:
		return problem{}
	case errors.As(err, &kubeconfigErr):
		return problem{invalidKubeconfig, kubeconfigErr.Error() + retryNotice}
	case errors.As(err, &deletedNode):
		return problem{nodeDeleted, fmt.Sprintf("node %s was deleted from %s; restart podd to create the node again, or remove --kubeconfig", deletedNode.Node, apiServer)}
	case errors.As(err, &missingNode):
		return problem{nodeMissing, fmt.Sprintf("%s has no node %s, and podd does not create the node because of --register-node=false; create the node", apiServer, missingNode.Node)}
	case errors.As(err, &pendingCSR):
		return problem{csrPending, pendingCSR.Error()}
	case errors.As(err, &rejectedCSR):
		return problem{csrRejected, rejectedCSR.Error() + "; podd creates another certificate signing request later, and pods from files and URLs keep running"}
	case errors.As(err, &clockErr):
		return problem{csrRejected, clockErr.Error() + retryNotice}
	case errors.As(err, &fileErr):
		return problem{fileFailure, fileErr.Error() + retryNotice}
	case errors.As(err, &status):
		return statusProblem(apiServer, status)
	case errors.As(err, &verifyErr):
		return problem{untrusted, fmt.Sprintf("%s has a certificate that is not trusted by the kubeconfig's CA: %v%s", apiServer, verifyErr.Err, retryNotice)}
	case isTimeout(err):
		return problem{unreachable, fmt.Sprintf("no response from %s within %s%s", apiServer, apiserver.RequestTimeout, retryNotice)}
	}
	var errno syscall.Errno
	var networkErr net.Error
	switch {
	case errors.As(err, &errno):
		return problem{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", apiServer, errno, retryNotice)}
	case errors.As(err, &networkErr):
		return problem{unreachable, fmt.Sprintf("%s cannot be reached: %v%s", apiServer, withoutURL(err), retryNotice)}
	}
	return problem{otherProblem, fmt.Sprintf("%s: %v%s", apiServer, withoutURL(err), retryNotice)}
}

// describeError returns the message for users that describes err, without the notice about retries.
func describeError(err error) string { return strings.TrimSuffix(newProblem(err).message, retryNotice) }

// statusProblem returns the problem that describes an error status. apiServer names the API server
// in the message.
func statusProblem(apiServer string, status apierrors.APIStatus) problem {
	s := status.Status()
	switch {
	case s.Code == http.StatusUnauthorized:
		return problem{unauthorized, apiServer + " rejects the credential of the kubeconfig (401 Unauthorized): its certificate or token is invalid or has expired" + retryNotice}
	case s.Code == http.StatusForbidden:
		return problem{forbidden, fmt.Sprintf("%s forbids a request: %s; the kubeconfig's user must be system:node:NAME in the group system:nodes%s", apiServer, apiserver.Sanitize(s.Message), retryNotice)}
	}
	return problem{serverError, fmt.Sprintf("%s returned status %d: %s%s", apiServer, s.Code, apiserver.Sanitize(s.Message), retryNotice)}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// withoutURL returns the cause of a url.Error that err contains, so that the method and the URL are
// omitted. If err contains no url.Error, withoutURL returns err.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
