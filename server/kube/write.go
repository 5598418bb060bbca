package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/server"
	"podd/server/kube/request"
)

// Manifests is where objects are written that are created over the API: a file
// each, which podd then reads as it reads others. It must be safe for concurrent
// use.
type Manifests interface {
	// Path is the file of an object, whether it is there or not.
	Path(kind string, key server.Key) string
	// Check tells what podd makes of a text.
	Check(kind string, text []byte) Checked
	// Read returns fs.ErrNotExist when there is no file.
	Read(kind string, key server.Key) ([]byte, error)
	// Write puts a text in place of the one that is there; after an error that one
	// still is.
	Write(kind string, key server.Key, text []byte) error
	Remove(kind string, key server.Key) error
	// End has a pod end with a grace of a client's choosing, now if it ends, and
	// else once its file is gone.
	End(ctx context.Context, pod server.Key, uid types.UID, grace time.Duration) error
	// Spare takes an End back, of a pod whose file stays.
	Spare(ctx context.Context, pod server.Key, uid types.UID) error
}

// Checked is an object as podd reads it.
type Checked struct {
	Object   server.Object        // with defaults, not shared; nil when it is refused
	Causes   []metav1.StatusCause // why it is
	Warnings []string
	// Version is the same of two texts when what runs of the one need not end for
	// the other; "" for what does not run.
	Version string
}

// writes says whether objects of a resource may be changed.
func (a *API) writes(res *resource, i request.Info) bool {
	if !slices.Contains(res.verbs, i.Verb) || unplaced(res, i) || i.Subresource != "" && i.Subresource != "resize" {
		return false
	}
	switch i.Verb {
	case "create":
		return i.Name == "" && i.Subresource == ""
	case "update", "patch":
		return i.Name != ""
	case "delete":
		return i.Subresource == ""
	}
	return i.Verb == "deletecollection"
}

// unplaced says that a path is that of all namespaces: there nothing is created, and
// not all is deleted at once.
func unplaced(res *resource, i request.Info) bool { return res.namespaced && i.Namespace == "" }

// write is one request to change something.
type write struct {
	*API
	w   http.ResponseWriter
	r   *http.Request
	res *resource
	i   request.Info
	// dry says that nothing is to be kept; strict, what becomes of fields that
	// nobody knows: Ignore, Warn or Strict.
	dry    bool
	strict string
	form   form
	// manager is whose the fields are that this changes; force takes those that are
	// applied from others.
	manager string
	force   bool
	// applied says that the object has its managers already.
	applied bool
}

func (a *API) write(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	c := &write{API: a, w: w, r: r, res: res, i: i}
	err := c.options()
	if err == nil {
		err = c.serve()
	}
	if err != nil {
		server.ReplyStatus(w, writeError(err))
	}
}

func (c *write) options() (err error) {
	q := c.r.URL.Query()
	if c.dry, err = dryRun(q["dryRun"]); err != nil {
		return err
	}
	switch c.strict = q.Get("fieldValidation"); c.strict {
	case "":
		c.strict = metav1.FieldValidationWarn
	case metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict:
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("fieldValidation: %.40q is none of Ignore, Warn and Strict", c.strict))
	}
	if err := c.managing(q); err != nil {
		return err
	}
	c.form, err = c.API.form(c.r, asTable, asMetadata)
	return err
}

// dryRun says whether nothing is to be kept. What is not understood is refused: who
// asks for it wants nothing changed.
func dryRun(values []string) (bool, error) {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return false, apierrors.NewBadRequest(fmt.Sprintf("dryRun: %.40q: only All is supported", value))
		}
	}
	return len(values) > 0, nil
}

// serve changes one thing at a time: between what was looked at and what is
// answered nobody else's write comes.
func (c *write) serve() error {
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

// turn waits until nobody else writes; the caller calls done.
func (c *write) turn() (done func(), err error) {
	select {
	case c.writing <- struct{}{}:
		return func() { <-c.writing }, nil
	case <-c.r.Context().Done():
		return nil, c.r.Context().Err()
	}
}

// reply answers with an object, in the form that the client wants it in.
func (c *write) reply(code int, e *entry) error {
	body := one(c.form, e, request.Include(c.r), true)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("X-Content-Type-Options", "nosniff")
	c.w.WriteHeader(code)
	c.w.Write(body) // a client that went away needs no answer
	return nil
}

// own is an object's entry, when the API has its file, or nobody has one any more
// since it ends; else the error says in which file it is.
func (c *write) own(key server.Key) (*entry, error) {
	i := c.i
	i.Namespace, i.Name = key.Namespace, key.Name
	e, err := c.find(c.r, c.res, i)
	if err != nil {
		return nil, err
	}
	path, _, _ := c.at(c.res, key)
	ends := path == "" && e.object.GetDeletionTimestamp() != nil
	if !ends && path != c.Manifests.Path(c.res.kind, key) {
		return nil, c.refusal(c.res, i)
	}
	return e, nil
}

// key is that of the object that the path names.
func (c *write) key() server.Key {
	if !c.res.namespaced {
		return server.Key{Name: c.i.Name}
	}
	return server.Key{Namespace: c.i.Namespace, Name: c.i.Name}
}

// writeError tells of a full disk as one.
func writeError(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	if api := apierrors.APIStatus(nil); errors.As(err, &api) || !full {
		return err
	}
	return &server.Error{Status: http.StatusInsufficientStorage, Message: "nothing was changed: " + err.Error() + "; make room and try again"}
}
