package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	kjson "sigs.k8s.io/json"

	"podd/server"
)

const mediaYAML = "application/yaml"

// object reads the body of a request as one of the resource's kind.
func (c *write) object() (server.Object, error) {
	body, err := readBody(c.w, c.r)
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch mediaType {
	case "", runtime.ContentTypeJSON:
		return c.decoded(body, nil)
	case mediaYAML:
		text, twice, err := fromYAML(body)
		if err != nil {
			return nil, err
		}
		return c.decoded(text, twice)
	case runtime.ContentTypeProtobuf:
		o := c.res.blank()
		err := decodeProtobuf(body, o.(review))
		if err != nil {
			return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
		}
		return o, c.named(o)
	}
	return nil, unsupported(runtime.ContentTypeJSON, mediaYAML, runtime.ContentTypeProtobuf)
}

// decoded reads JSON. What nobody knows of it is told as the request asks,
// together with what was strange before.
func (c *write) decoded(text []byte, strange []error) (server.Object, error) {
	o := c.res.blank()
	unknown, err := kjson.UnmarshalStrict(text, o)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is no %s: %v", c.res.kind, err))
	}
	if err := c.tell(append(strange, unknown...)); err != nil {
		return nil, err
	}
	return o, c.named(o)
}

// named says whether it is of the right kind.
func (c *write) named(o server.Object) error {
	if got := o.GetObjectKind().GroupVersionKind(); got != c.res.gvk() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is of kind %.80q in version %.80q: want %s %s", got.Kind, got.GroupVersion(), c.res.kind, c.res.gvk().GroupVersion()))
	}
	return nil
}

// mostStrange is how many fields are told of that nobody knows.
const mostStrange = 32

func (c *write) tell(strange []error) error { return tellStrange(c.w, c.strict, strange) }

// tellStrange refuses what would be dropped, or warns of it, as a fieldValidation
// asks; one that is not known is Warn.
func tellStrange(w http.ResponseWriter, validation string, strange []error) error {
	if len(strange) == 0 || validation == metav1.FieldValidationIgnore {
		return nil
	}
	var all []string
	for _, err := range strange[:min(len(strange), mostStrange)] {
		all = append(all, err.Error())
	}
	if validation == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest("strict decoding error: " + strings.Join(all, ", "))
	}
	warn(w, all...)
	return nil
}

func (c *write) warn(all ...string) { warn(c.w, all...) }

// warn has kubectl print something beside the answer.
func warn(w http.ResponseWriter, all ...string) {
	for _, text := range all {
		if h, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", h)
		}
	}
}

// text is what is written of an object: all but what a server sets, but with uid,
// creation time and managers, which it keeps.
func text(o server.Object) []byte {
	o = o.DeepCopyObject().(server.Object)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetSelfLink("")
	o.SetOwnerReferences(nil)
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	switch o := o.(type) {
	case *v1.Pod:
		o.Status = v1.PodStatus{}
	case *v1.Secret:
		fold(o)
	case *v1.PersistentVolumeClaim:
		o.Status = v1.PersistentVolumeClaimStatus{}
	case *v1.PersistentVolume:
		o.Status = v1.PersistentVolumeStatus{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is no HTML, and six times as long
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		panic("encoding an object of Kubernetes: " + err.Error())
	}
	return b.Bytes()
}

// fold makes data of stringData, which is only for writing.
func fold(s *v1.Secret) {
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// check is the object that podd would make of a text; else why it would not.
func (c *write) check(name string, text []byte) (Checked, error) {
	checked := c.Manifests.Check(c.res.kind, text)
	if checked.Object == nil {
		return checked, c.invalid(name, checked.Causes...)
	}
	checked.Object.GetObjectKind().SetGroupVersionKind(c.res.gvk())
	return checked, nil
}

// invalid tells field by field what an object must not have.
func (c *write) invalid(name string, causes ...metav1.StatusCause) error {
	var all []string
	for _, cause := range causes {
		all = append(all, strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	message := strings.Join(all, ", ")
	if len(all) > 1 {
		message = "[" + message + "]"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", c.res.kind, name, message),
		Details: &metav1.StatusDetails{Group: c.res.group, Kind: c.res.kind, Name: name, Causes: causes},
	}}
}
