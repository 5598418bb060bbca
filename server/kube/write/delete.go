package write

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"podd/server"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// A deletion contains the parameters of v1.DeleteOptions that podd supports.
type deletion struct {
	graceSeconds  *int64 // nil means the pod's own grace period
	preconditions *metav1.Preconditions
}

// maxGraceSeconds limits the grace period in seconds, so that it can be converted to a
// time.Duration.
const maxGraceSeconds = int64(100 * 365 * 24 * 3600)

func (c *call) readDeletion() (deletion, error) {
	o, err := c.readDeleteOptions()
	if err == nil {
		err = addQueryOptions(c.r.URL.Query(), o)
	}
	if err != nil {
		return deletion{}, err
	}
	isDryRun, err := parseDryRun(o.DryRun)
	if err != nil {
		return deletion{}, err
	}
	c.isDryRun = c.isDryRun || isDryRun
	switch p := o.PropagationPolicy; {
	case p == nil, *p == metav1.DeletePropagationBackground, *p == metav1.DeletePropagationForeground, *p == metav1.DeletePropagationOrphan:
		// All policies have the same effect, because objects of manifests have no dependents.
	default:
		return deletion{}, apierrors.NewBadRequest(fmt.Sprintf("propagationPolicy: %.40q is not Background, Foreground or Orphan", *p))
	}
	if g := o.GracePeriodSeconds; g != nil && *g < 0 {
		*g = 1 // an API server also replaces a negative grace period with one second
	} else if g != nil {
		*g = min(*g, maxGraceSeconds)
	}
	return deletion{o.GracePeriodSeconds, o.Preconditions}, nil
}

func (c *call) readDeleteOptions() (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	body, err := readBody(c.w, c.r)
	if err != nil || len(body) == 0 {
		return o, err
	}
	mediaType, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch mediaType {
	case "", runtime.ContentTypeJSON:
		err = kjson.UnmarshalCaseSensitivePreserveInts(body, o)
	case mediaYAML:
		err = yaml.Unmarshal(body, o)
	case runtime.ContentTypeProtobuf:
		err = request.DecodeProtobuf(body, o)
	default:
		return nil, request.NewUnsupportedMediaTypeError(runtime.ContentTypeJSON, mediaYAML, runtime.ContentTypeProtobuf)
	}
	if err == nil && o.Kind != "" && o.Kind != "DeleteOptions" {
		err = fmt.Errorf("kind %.40q: must be DeleteOptions", o.Kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return o, nil
}

// addQueryOptions adds the options in the query to o, unless the body has set them already.
func addQueryOptions(q url.Values, o *metav1.DeleteOptions) error {
	if s := q.Get("gracePeriodSeconds"); s != "" && o.GracePeriodSeconds == nil {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds: %.40q is not a number", s))
		}
		o.GracePeriodSeconds = &n
	}
	if s := q.Get("propagationPolicy"); s != "" && o.PropagationPolicy == nil {
		o.PropagationPolicy = (*metav1.DeletionPropagation)(&s)
	}
	return nil
}

func (c *call) delete() error {
	entries, err := c.deleteAll(func() ([]*resource.Entry, error) {
		e, err := c.objects.Find(c.r.Context(), c.res, c.key())
		return []*resource.Entry{e}, err
	})
	switch {
	case err != nil:
		return err
	case c.res.Name == "pods":
		return c.reply(http.StatusOK, entries[0])
	}
	server.Reply(c.w, http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: c.i.Name, Group: c.res.Group, Kind: c.res.Name, UID: entries[0].Object.GetUID()},
	})
	return nil
}

// deleteAll deletes the objects that find returns. It deletes no object if any of them is in a file
// of another source or does not meet the preconditions. It returns the result of remove.
func (c *call) deleteAll(find func() ([]*resource.Entry, error)) ([]*resource.Entry, error) {
	d, err := c.readDeletion()
	if err != nil {
		return nil, err
	}
	unlock, err := c.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	entries, err := find()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if _, err := c.writableEntry(e.Key); err != nil {
			return nil, err
		}
		if err := c.checkPreconditions(e, d.preconditions); err != nil {
			return nil, err
		}
	}
	return c.remove(d, entries)
}

func (c *call) checkPreconditions(e *resource.Entry, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if uid := e.Object.GetUID(); p.UID != nil && *p.UID != uid {
		return apierrors.NewConflict(c.res.GroupResource(), e.Key.Name, fmt.Errorf("precondition failed: UID in precondition: %.80s, UID in object meta: %s", *p.UID, uid))
	}
	if resourceVersion := e.Object.GetResourceVersion(); p.ResourceVersion != nil && *p.ResourceVersion != resourceVersion {
		return apierrors.NewConflict(c.res.GroupResource(), e.Key.Name, fmt.Errorf("precondition failed: ResourceVersion in precondition: %.80s, ResourceVersion in object meta: %s", *p.ResourceVersion, resourceVersion))
	}
	return nil
}

// remove removes the files of objects. For each object it returns the terminating pod or,
// if nothing remains, the object before its deletion.
func (c *call) remove(d deletion, entries []*resource.Entry) ([]*resource.Entry, error) {
	if c.isDryRun {
		return entries, nil
	}
	var errs []error
	var pending []*resource.Entry
	for _, e := range entries {
		if err := c.removeFile(e, d); err != nil {
			errs = append(errs, err)
			continue
		}
		pending = append(pending, e)
	}
	err := c.waitFor(c.r.Context(), func(v *server.View) (bool, error) {
		pending = slices.DeleteFunc(pending, func(e *resource.Entry) bool { return c.isDeleted(v, e) })
		return len(pending) == 0, nil
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	result := slices.Clone(entries)
	for n, e := range entries {
		if current, err := c.objects.Find(c.r.Context(), c.res, e.Key); err == nil && current.Object.GetUID() == e.Object.GetUID() {
			result[n] = current
		}
	}
	return result, nil
}

func (c *call) removeFile(e *resource.Entry, d deletion) error {
	if c.res.Name == "pods" && d.graceSeconds != nil {
		if err := c.manifests.Delete(c.r.Context(), e.Key, e.Object.GetUID(), time.Duration(*d.graceSeconds)*time.Second); err != nil {
			return fmt.Errorf("deleting pod %q: %w", e.Key.Name, err)
		}
	}
	if err := c.manifests.Remove(c.res.Kind, e.Key); err != nil {
		if c.res.Name == "pods" && d.graceSeconds != nil {
			// Cancel Delete, even if the client has disconnected: the pod continues to run, and
			// must later be stopped with its own grace period.
			err = errors.Join(err, c.manifests.CancelDelete(context.WithoutCancel(c.r.Context()), e.Key, e.Object.GetUID()))
		}
		return fmt.Errorf("deleting %s %q: %w", c.res.Singular, e.Key.Name, err)
	}
	return nil
}

// isDeleted reports whether the View shows that an object is deleted or being
// deleted.
func (c *call) isDeleted(v *server.View, e *resource.Entry) bool {
	path := c.manifests.Path(c.res.Kind, e.Key)
	if c.res.Name != "pods" {
		return !slices.ContainsFunc(v.Files, func(f server.FileView) bool { return f.Path == path })
	}
	p := v.Pod(e.Key)
	return p == nil || p.Pod.DeletionTimestamp != nil || p.Pod.UID != e.Object.GetUID()
}

// deleteCollection deletes all selected objects.
func (c *call) deleteCollection() error {
	var rev uint64
	entries, err := c.deleteAll(func() (entries []*resource.Entry, err error) {
		entries, rev, err = c.objects.Select(c.r.Context(), c.res, c.i.Namespace, c.r.URL.Query())
		return entries, err
	})
	if err != nil {
		return err
	}
	for _, e := range entries {
		rev = max(rev, e.Rev)
	}
	server.ReplyJSON(c.w, http.StatusOK, resource.EncodeList(c.res.ListType(), entries, rev, func(e *resource.Entry) []byte { return c.encoder.Encode(e, false) }))
	return nil
}
