package kube

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
)

// An apiserver's own limits.
const (
	// maxBody bounds a body, and what a JSON patch may add by copying.
	maxBody = 3 << 20
	// maxOperations bounds those of a JSON patch.
	maxOperations = 10_000
)

func init() { jsonpatch.AccumulatedCopySizeLimit = maxBody }

// patch is the body of a PATCH. It can be applied more than once: to an object
// as it is, and when that changed meanwhile, to the newer one.
type patch struct {
	kind types.PatchType
	body []byte
}

func patchType(r *http.Request) types.PatchType {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return types.PatchType(mediaType)
}

// readPatch reads a patch of one of the kinds that change what is there; a server
// side apply is not one of them.
func readPatch(w http.ResponseWriter, r *http.Request) (patch, error) {
	p := patch{kind: patchType(r)}
	switch p.kind {
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
	default:
		return p, unsupported(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType))
	}
	var err error
	p.body, err = readBody(w, r)
	return p, err
}

// readBody reads a body that is no larger than an apiserver takes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	case err != nil:
		return nil, apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	return body, nil
}

// unsupported tells of a body in none of the media types that are taken.
func unsupported(taken ...string) error {
	message := "the body of the request was in an unknown format - accepted media types include: "
	for n, t := range taken {
		if n > 0 {
			message += ", "
		}
		message += t
	}
	return &server.Error{Status: http.StatusUnsupportedMediaType, Message: message}
}

// apply returns the JSON of o with the patch applied; o stays as it is. Whether
// the outcome is still an object of its kind, and a valid one, is for the caller.
func (p patch) apply(o server.Object) ([]byte, error) {
	was, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("encoding %q before it is patched: %w", o.GetName(), err)
	}
	switch p.kind {
	case types.JSONPatchType:
		return p.operate(was)
	case types.MergePatchType:
		is, err := jsonpatch.MergePatch(was, p.body)
		return is, badPatch(err)
	}
	is, err := strategicpatch.StrategicMergePatch(was, p.body, o)
	if slices.Contains(noPatch, err) {
		return nil, badPatch(err)
	}
	return is, unprocessable(err)
}

// noPatch are the errors that a strategic merge patch has in itself, whatever it
// is applied to.
var noPatch = []error{
	mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
	mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
}

// operate applies the operations of a JSON patch, all or none.
func (p patch) operate(was []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(p.body)
	if err != nil {
		return nil, badPatch(err)
	}
	if n := len(operations); n > maxOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the allowed maximum operations in a JSON patch is %d, got %d", maxOperations, n))
	}
	is, err := operations.Apply(was)
	return is, unprocessable(err)
}

// badPatch tells of a body that is no patch.
func badPatch(err error) error {
	if err == nil {
		return nil
	}
	return apierrors.NewBadRequest("error decoding patch: " + err.Error())
}

// unprocessable tells of a patch that does not fit the object: a test that
// failed, a path that is not there.
func unprocessable(err error) error {
	if err == nil {
		return nil
	}
	return &server.Error{Status: http.StatusUnprocessableEntity, Message: "applying the patch: " + err.Error()}
}
