package write

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// A call is a request that changes an object.
type call struct {
	*Handler
	w   http.ResponseWriter
	r   *http.Request
	res *resource.Definition
	i   request.Info
	// isDryRun is set if the request must not store anything. fieldValidation is Ignore, Warn or
	// Strict.
	isDryRun        bool
	fieldValidation string
	encoder         resource.Encoder
	// manager is the field manager of the change. force makes an apply overwrite the fields
	// of other managers.
	manager string
	force   bool
	// hasManagedFields is set if the managed fields of the object are up to date.
	hasManagedFields bool
}

func (c *call) serve() error {
	if err := c.readOptions(); err != nil {
		return err
	}
	switch c.i.Verb {
	case "create":
		return c.create()
	case "update":
		return c.update()
	case "patch":
		return c.patch()
	case "delete":
		return c.delete()
	}
	return c.deleteCollection()
}

func (c *call) readOptions() (err error) {
	q := c.r.URL.Query()
	if c.isDryRun, err = parseDryRun(q["dryRun"]); err != nil {
		return err
	}
	switch c.fieldValidation = q.Get("fieldValidation"); c.fieldValidation {
	case "":
		c.fieldValidation = metav1.FieldValidationWarn
	case metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict:
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("fieldValidation: %.40q is not Ignore, Warn or Strict", c.fieldValidation))
	}
	if err := c.readManager(q); err != nil {
		return err
	}
	c.encoder, err = resource.NewEncoder(c.r, c.now, request.AsTable, request.AsMetadata)
	return err
}

// parseDryRun reports whether the request is a dry run. It returns an error for an unknown value,
// because a client that sends dryRun expects that nothing is changed.
func parseDryRun(values []string) (bool, error) {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return false, apierrors.NewBadRequest(fmt.Sprintf("dryRun: %.40q: only All is supported", value))
		}
	}
	return len(values) > 0, nil
}

// lock waits until no other write is in progress. The caller must call unlock.
func (c *call) lock() (unlock func(), err error) { return lock(c.r.Context(), c.writeLock) }

func lock(ctx context.Context, semaphore chan struct{}) (unlock func(), err error) {
	select {
	case semaphore <- struct{}{}:
		return func() { <-semaphore }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// reply responds with an object in the representation that the client requested.
func (c *call) reply(code int, e *resource.Entry) error {
	server.ReplyJSON(c.w, code, c.encoder.Encode(e, true))
	return nil
}

// writableEntry returns the entry of an object that can be changed through the API. Either the file
// of the object belongs to the API, or the object is a terminating pod without a file. For any
// other object, the error names the object's file.
func (c *call) writableEntry(key server.Key) (*resource.Entry, error) {
	i := c.i
	i.Namespace, i.Name = key.Namespace, key.Name
	e, err := c.objects.Find(c.r.Context(), c.res, key)
	if err != nil {
		return nil, err
	}
	path, _, _ := c.origin(c.res, key)
	isTerminatingWithoutFile := path == "" && e.Object.GetDeletionTimestamp() != nil
	if !isTerminatingWithoutFile && path != c.manifests.Path(c.res.Kind, key) {
		return nil, c.newUnsupportedError(c.res, i)
	}
	return e, nil
}

// key returns the key of the object in the path.
func (c *call) key() server.Key { return c.res.Key(c.i.Namespace, c.i.Name) }
