package write

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"podd/server"
	"podd/server/kube/request"
)

// An API server has the same limits.
const (
	// maxBodyBytes limits a body, and the data that a JSON patch may copy, in bytes.
	maxBodyBytes = 3 << 20
	// maxOperations limits the number of operations of a JSON patch.
	maxOperations = 10_000
)

func init() { jsonpatch.AccumulatedCopySizeLimit = maxBodyBytes }

// A patch is the body of a PATCH. It may be applied several times.
type patch struct {
	kind types.PatchType
	body []byte
}

func patchType(r *http.Request) types.PatchType {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return types.PatchType(mediaType)
}

// readPatch reads a patch. It does not accept a server-side apply.
func readPatch(w http.ResponseWriter, r *http.Request) (patch, error) {
	p := patch{kind: patchType(r)}
	switch p.kind {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
	default:
		return p, request.NewUnsupportedMediaTypeError(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType))
	}
	var err error
	p.body, err = readBody(w, r)
	return p, err
}

// readBody reads a body with the size limit of an API server.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var bodyErr *http.MaxBytesError
	switch {
	case errors.As(err, &bodyErr):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBodyBytes))
	case err != nil:
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return body, nil
}

// apply returns the JSON of o after applying the patch; o is not modified. The
// caller must check whether the result is a valid object of its kind.
func (p patch) apply(o server.Object) ([]byte, error) {
	document, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %q before it is patched: %w", o.GetName(), err)
	}
	switch p.kind {
	case types.JSONPatchType:
		return p.applyOperations(document)
	case types.MergePatchType:
		patched, err := jsonpatch.MergePatch(document, p.body)
		return patched, newBadPatchError(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(document, p.body, o)
	if slices.Contains(malformedErrors, err) {
		return nil, newBadPatchError(err)
	}
	return patched, newUnprocessableError(err)
}

// malformedErrors are the errors of a strategic merge patch that cannot be applied to any object.
var malformedErrors = []error{
	mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
	mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
}

// applyOperations applies the operations of a JSON patch to a JSON document and returns the result.
// It returns an error if any operation fails.
func (p patch) applyOperations(document []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, newBadPatchError(err)
	}
	if n := len(operations); n > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the allowed maximum operations in a JSON patch is %d, got %d", maxOperations, n))
	}
	patched, err := operations.Apply(document)
	return patched, newUnprocessableError(err)
}

// newBadPatchError returns the error for a body that is not a patch.
func newBadPatchError(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest("error decoding patch: " + err.Error())
}

// newUnprocessableError returns the error for a patch that cannot be applied to the object,
// for example because of a failed test or a missing path.
func newUnprocessableError(err error) error {
	if err == nil {
		return nil
	}
	return &server.Error{Status: http.StatusUnprocessableEntity, Message: "applying the patch: " + err.Error()}
}
