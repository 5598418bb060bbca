package write

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
	"podd/server/kube/request"
)

const mediaYAML = "application/yaml"

// decodeObject decodes the body of a request.
func (c *call) decodeObject() (server.Object, error) {
	body, err := readBody(c.w, c.r)
	if err != nil {
		return nil, err
	}
	mediaType, _, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	switch mediaType {
	case "", runtime.ContentTypeJSON:
		return c.decodeJSON(body, nil)
	case mediaYAML:
		text, duplicates, err := yamlToJSON(body)
		if err != nil {
			return nil, err
		}
		return c.decodeJSON(text, duplicates)
	case runtime.ContentTypeProtobuf:
		o := c.res.NewObject()
		err := request.DecodeProtobuf(body, o.(request.Message))
		if err != nil {
			return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
		}
		return o, c.checkKind(o)
	}
	return nil, request.NewUnsupportedMediaTypeError(runtime.ContentTypeJSON, mediaYAML, runtime.ContentTypeProtobuf)
}

// decodeJSON decodes JSON. It passes unknown fields, and the problems that the caller has
// already found, to reportUnknown.
func (c *call) decodeJSON(text []byte, problems []error) (server.Object, error) {
	o := c.res.NewObject()
	strictErrs, err := kjson.UnmarshalStrict(text, o)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decoding the body as %s: %v", c.res.Kind, err))
	}
	if err := c.reportUnknown(append(problems, strictErrs...)); err != nil {
		return nil, err
	}
	return o, c.checkKind(o)
}

// checkKind returns an error unless o has the kind of the resource.
func (c *call) checkKind(o server.Object) error {
	if kind := o.GetObjectKind().GroupVersionKind(); kind != c.res.GroupVersionKind() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body has kind %.80q in version %.80q, must be %s %s", kind.Kind, kind.GroupVersion(), c.res.Kind, c.res.GroupVersionKind().GroupVersion()))
	}
	return nil
}

// maxReportedFields limits the number of unknown fields that are reported.
const maxReportedFields = 32

func (c *call) reportUnknown(problems []error) error {
	return reportUnknown(c.w, c.fieldValidation, problems)
}

// reportUnknown returns an error for unknown or duplicate fields, or adds warnings,
// depending on fieldValidation. An unknown value of fieldValidation means Warn.
func reportUnknown(w http.ResponseWriter, validation string, problems []error) error {
	if len(problems) == 0 || validation == metav1.FieldValidationIgnore {
		return nil
	}
	var messages []string
	for _, err := range problems[:min(len(problems), maxReportedFields)] {
		messages = append(messages, err.Error())
	}
	if validation == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest("strict decoding error: " + strings.Join(messages, ", "))
	}
	warn(w, messages...)
	return nil
}

func (c *call) warn(warnings ...string) { warn(c.w, warnings...) }

// warn adds warnings to the response, which kubectl prints.
func warn(w http.ResponseWriter, warnings ...string) {
	for _, text := range warnings {
		if h, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", h)
		}
	}
}

// manifestText returns the text of an object's file. The text omits the fields that the server
// sets. It contains the UID, the creation timestamp and the managed fields, because they must be
// preserved.
func manifestText(o server.Object) []byte {
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
		foldStringData(o)
	case *v1.PersistentVolumeClaim:
		o.Status = v1.PersistentVolumeClaimStatus{}
	case *v1.PersistentVolume:
		o.Status = v1.PersistentVolumeStatus{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the text is not HTML, and escaping would make it up to six times as long
	e.SetIndent("", "  ")
	if err := e.Encode(o); err != nil {
		panic("encoding a Kubernetes object: " + err.Error())
	}
	return b.Bytes()
}

// foldStringData moves stringData, which is write-only, to data.
func foldStringData(s *v1.Secret) {
	for key, value := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// parseManifest returns the object that podd reads from text. It returns an error if text is
// invalid.
func (c *call) parseManifest(name string, text []byte) (ParsedManifest, error) {
	manifest := c.manifests.Parse(c.res.Kind, text)
	if manifest.Object == nil {
		return manifest, c.newInvalidError(name, manifest.Causes...)
	}
	manifest.Object.GetObjectKind().SetGroupVersionKind(c.res.GroupVersionKind())
	return manifest, nil
}

// newInvalidError returns the API's error Invalid with the causes.
func (c *call) newInvalidError(name string, causes ...metav1.StatusCause) error {
	var messages []string
	for _, cause := range causes {
		messages = append(messages, strings.TrimPrefix(cause.Field+": "+cause.Message, ": "))
	}
	message := strings.Join(messages, ", ")
	if len(messages) > 1 {
		message = "[" + message + "]"
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s", c.res.Kind, name, message),
		Details: &metav1.StatusDetails{Group: c.res.Group, Kind: c.res.Kind, Name: name, Causes: causes},
	}}
}
