package credential

import (
	"fmt"
	"time"
)

// The errors that need a message of their own for users.
type (
	// A KubeconfigError is the error of an invalid kubeconfig.
	KubeconfigError struct{ error }
	// A PendingError is the error of a certificate signing request that is not signed yet.
	PendingError struct {
		request  string
		approved bool // the request is approved
	}
	// A RejectedError is the error of a certificate signing request that was denied or has
	// failed. result is the end of a sentence that begins with the name of the request, such as
	// "was denied".
	RejectedError struct{ request, result, message string } // message of the signer; may be ""
	// A FileError is the error of a file of podd that cannot be read or written.
	FileError struct{ error }
	// A ClockError is the error of a new certificate that has already expired.
	ClockError struct{ expiredAt time.Time }
)

func (e PendingError) Error() string {
	if e.approved {
		return "certificate signing request " + e.request + " is approved, but not signed yet; check the signer, usually kube-controller-manager"
	}
	return fmt.Sprintf("certificate signing request %s is waiting for approval; run \"kubectl certificate approve %[1]s\"", e.request)
}

func (e ClockError) Error() string {
	return fmt.Sprintf("according to the clock of this host, the new certificate already expired at %s; correct the clock of this host or of the cluster", e.expiredAt.UTC().Format(time.RFC3339))
}

func (e RejectedError) Error() string {
	text := fmt.Sprintf("certificate signing request %s %s", e.request, e.result)
	if e.message != "" {
		text += ": " + e.message
	}
	return text
}
