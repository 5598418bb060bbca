package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/request"
)

// asked is a question of somebody about themselves, and how it is read.
type asked struct {
	user auth.User
	read func(into review) error
}

// review is what a question is decoded into.
type review interface {
	runtime.Object
	Unmarshal([]byte) error // from protobuf
}

// maxReview bounds the body of a review.
const maxReview = 64 << 10

// reviews are questions that look like resources.
func reviews() []*resource {
	const may, who = "authorization.k8s.io", "authentication.k8s.io"
	return []*resource{
		{group: who, name: "selfsubjectreviews", kind: "SelfSubjectReview", verbs: creates, review: (*API).whoAmI},
		{group: may, name: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview", verbs: creates, review: (*API).mayI},
		{group: may, name: "selfsubjectrulesreviews", kind: "SelfSubjectRulesReview", verbs: creates, review: (*API).whatMayI},
	}
}

func (a *API) review(w http.ResponseWriter, r *http.Request, res *resource, i request.Info) {
	if i.Verb != "create" || i.Name != "" {
		server.ReplyStatus(w, &server.Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s are only created", res.name)})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReview))
	if err != nil {
		server.ReplyStatus(w, server.Unread("reading the review", err))
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	answer, err := res.review(a, r.Context(), asked{auth.From(r.Context()), func(into review) error { return decode(kind, body, into, res) }})
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	server.Reply(w, http.StatusCreated, answer)
}

// decode reads the body of a request: JSON, or the protobuf that client-go sends
// what it knows in, also to who answers in JSON alone.
func decode(mediaType string, body []byte, into review, res *resource) error {
	var err error
	switch mediaType {
	case "application/json":
		err = json.Unmarshal(body, into)
	case runtime.ContentTypeProtobuf:
		err = decodeProtobuf(body, into)
	default:
		return &server.Error{Status: http.StatusUnsupportedMediaType, Message: "the body of the request was in an unknown format - accepted media types include: application/json, " + runtime.ContentTypeProtobuf}
	}
	if err != nil {
		return apierrors.NewBadRequest("reading the review: " + err.Error())
	}
	if got := into.GetObjectKind().GroupVersionKind(); got != res.gvk() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is of kind %.80q: want %q", got, res.gvk()))
	}
	return nil
}

// decodeProtobuf reads Kubernetes' envelope, which has the kind.
func decodeProtobuf(body []byte, into review) error {
	wrapped, found := bytes.CutPrefix(body, []byte("k8s\x00"))
	if !found {
		return errors.New("it does not begin as Kubernetes' protobuf does")
	}
	var u runtime.Unknown
	if err := u.Unmarshal(wrapped); err != nil {
		return err
	}
	if err := into.Unmarshal(u.Raw); err != nil {
		return err
	}
	into.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(u.APIVersion, u.Kind))
	return nil
}

func (a *API) whoAmI(_ context.Context, q asked) (any, error) {
	var r authentication.SelfSubjectReview
	err := q.read(&r)
	r.Status.UserInfo = authentication.UserInfo{Username: q.user.Name, UID: q.user.UID, Groups: q.user.Groups}
	for name, values := range q.user.Extra {
		if r.Status.UserInfo.Extra == nil {
			r.Status.UserInfo.Extra = map[string]authentication.ExtraValue{}
		}
		r.Status.UserInfo.Extra[name] = values
	}
	return r, err
}

func (a *API) mayI(ctx context.Context, q asked) (any, error) {
	var r authorization.SelfSubjectAccessReview
	err := q.read(&r)
	if err != nil {
		return nil, err
	}
	var of auth.Attributes
	switch res, path := r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes; {
	case (res == nil) == (path == nil):
		return nil, apierrors.NewBadRequest("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
	case res != nil:
		of = auth.Attributes{Verb: res.Verb, Group: res.Group, Resource: res.Resource, Namespace: res.Namespace, Name: res.Name, Subresources: []string{res.Subresource}}
	default:
		of = auth.Attributes{Verb: path.Verb, Path: path.Path}
	}
	may, err := a.Authorizer.Allows(ctx, q.user, of)
	r.Status = authorization.SubjectAccessReviewStatus{Allowed: may}
	if err != nil {
		r.Status.EvaluationError = err.Error()
	}
	return r, nil
}

func (a *API) whatMayI(_ context.Context, q asked) (any, error) {
	var r authorization.SelfSubjectRulesReview
	err := q.read(&r)
	if err != nil {
		return nil, err
	}
	if r.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	r.Status = authorization.SubjectRulesReviewStatus{ResourceRules: []authorization.ResourceRule{}, NonResourceRules: []authorization.NonResourceRule{}}
	rules, err := a.Authorizer.Rules(q.user, r.Spec.Namespace)
	if err != nil {
		r.Status.Incomplete, r.Status.EvaluationError = true, err.Error()
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			r.Status.ResourceRules = append(r.Status.ResourceRules, authorization.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			r.Status.NonResourceRules = append(r.Status.NonResourceRules, authorization.NonResourceRule{Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs})
		}
	}
	return r, nil
}
