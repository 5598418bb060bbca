package read

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parseRevision returns the resourceVersion in a query. isGiven is false if resourceVersion is
// missing or 0, which means any version.
func parseRevision(q url.Values) (rev uint64, isGiven bool, err error) {
	s := q.Get("resourceVersion")
	if s == "" || s == "0" {
		return 0, false, nil
	}
	if rev, err = strconv.ParseUint(s, 10, 64); err != nil {
		return 0, false, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: %.40q is not a number", s))
	}
	return rev, true, nil
}

// checkListRevision returns an error if a list at the revision currentRev does not satisfy the
// resourceVersion parameters of the query.
func checkListRevision(q url.Values, currentRev uint64) error {
	rev, isGiven, err := parseRevision(q)
	match := metav1.ResourceVersionMatch(q.Get("resourceVersionMatch"))
	switch {
	case err != nil:
		return err
	case match != "" && match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan:
		return apierrors.NewBadRequest(fmt.Sprintf("resourceVersionMatch: %.40q is neither Exact nor NotOlderThan", match))
	case match != "" && q.Get("resourceVersion") == "":
		return apierrors.NewBadRequest("resourceVersionMatch is forbidden unless resourceVersion is provided")
	case isGiven && rev > currentRev:
		return newTooNewError(rev, currentRev)
	case isGiven && match == metav1.ResourceVersionMatchExact && rev != currentRev:
		return newExpiredError(rev)
	}
	return nil
}

// newExpiredError returns the error for a revision that is no longer retained.
// The client must list again.
func newExpiredError(rev uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", rev))
}

// newTooNewError returns the error for a revision in the future. Clients recognize the
// error by its cause and list again.
func newTooNewError(rev, currentRev uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", rev, currentRev), 1)
	err.ErrStatus.Code = http.StatusGatewayTimeout
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}
