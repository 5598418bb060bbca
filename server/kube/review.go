package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/request"
	"podd/server/kube/resource"
)

// reviewRequest is a review of the user's own permissions or identity.
type reviewRequest struct {
	user   auth.User
	decode func(into request.Message) error
}

// maxReviewBytes limits the body of a review, in bytes.
const maxReviewBytes = 64 << 10

// reviewers maps each resource for reviews to the function that computes the response.
// Reviews can only be created.
var reviewers = map[string]func(*API, context.Context, reviewRequest) (any, error){
	"selfsubjectreviews":       (*API).selfSubjectReview,
	"selfsubjectaccessreviews": (*API).selfSubjectAccessReview,
	"selfsubjectrulesreviews":  (*API).selfSubjectRulesReview,
}

func (a *API) review(w http.ResponseWriter, r *http.Request, res *resource.Definition, i request.Info) {
	if i.Verb != "create" || i.Name != "" {
		server.ReplyStatus(w, &server.Error{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%s can only be created", res.Name)})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReviewBytes))
	if err != nil {
		server.ReplyStatus(w, server.NewBodyError("reading the review in the request body", err))
		return
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	response, err := reviewers[res.Name](a, r.Context(), reviewRequest{auth.UserFrom(r.Context()), func(into request.Message) error { return decodeReview(kind, body, into, res) }})
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	server.Reply(w, http.StatusCreated, response)
}

// decodeReview decodes the body of a request: JSON or protobuf. Both are necessary, because
// client-go may send protobuf even to servers that respond with JSON only.
func decodeReview(mediaType string, body []byte, into request.Message, res *resource.Definition) error {
	var err error
	switch mediaType {
	case runtime.ContentTypeJSON:
		err = json.Unmarshal(body, into)
	case runtime.ContentTypeProtobuf:
		err = request.DecodeProtobuf(body, into)
	default:
		return request.NewUnsupportedMediaTypeError(runtime.ContentTypeJSON, runtime.ContentTypeProtobuf)
	}
	if err != nil {
		return apierrors.NewBadRequest("decoding the review in the request body: " + err.Error())
	}
	if kind := into.GetObjectKind().GroupVersionKind(); kind != res.GroupVersionKind() {
		return apierrors.NewBadRequest(fmt.Sprintf("the body has kind %.80q, must be %q", kind, res.GroupVersionKind()))
	}
	return nil
}

func (a *API) selfSubjectReview(_ context.Context, q reviewRequest) (any, error) {
	var r authentication.SelfSubjectReview
	err := q.decode(&r)
	r.Status.UserInfo = authentication.UserInfo{Username: q.user.Name, UID: q.user.UID, Groups: q.user.Groups}
	for name, values := range q.user.Extra {
		if r.Status.UserInfo.Extra == nil {
			r.Status.UserInfo.Extra = map[string]authentication.ExtraValue{}
		}
		r.Status.UserInfo.Extra[name] = values
	}
	return r, err
}

func (a *API) selfSubjectAccessReview(ctx context.Context, q reviewRequest) (any, error) {
	var r authorization.SelfSubjectAccessReview
	err := q.decode(&r)
	if err != nil {
		return nil, err
	}
	var attributes auth.Attributes
	switch res, path := r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes; {
	case (res == nil) == (path == nil):
		return nil, apierrors.NewBadRequest("spec: exactly one of resourceAttributes and nonResourceAttributes must be given")
	case res != nil:
		attributes = auth.Attributes{Verb: res.Verb, Group: res.Group, Resource: res.Resource, Namespace: res.Namespace, Name: res.Name, Subresources: []string{res.Subresource}}
	default:
		attributes = auth.Attributes{Verb: path.Verb, Path: path.Path}
	}
	isAllowed, err := a.Authorizer.Allows(ctx, q.user, attributes)
	r.Status = authorization.SubjectAccessReviewStatus{Allowed: isAllowed}
	if err != nil {
		r.Status.EvaluationError = err.Error()
	}
	return r, nil
}

func (a *API) selfSubjectRulesReview(_ context.Context, q reviewRequest) (any, error) {
	var r authorization.SelfSubjectRulesReview
	err := q.decode(&r)
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
