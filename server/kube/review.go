package kube

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"podd/server"
	"podd/server/auth"
	"podd/server/kube/request"
)

// asked is a question of somebody about themselves.
type asked struct {
	user auth.User
	body json.RawMessage
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
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		server.ReplyStatus(w, &server.Error{Status: http.StatusUnsupportedMediaType, Message: "the body of the request was in an unknown format - accepted media types include: application/json"})
		return
	}
	var body json.RawMessage
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&body)
	if err != nil {
		server.ReplyStatus(w, apierrors.NewBadRequest("reading the review: "+err.Error()))
		return
	}
	answer, err := res.review(a, asked{auth.From(r.Context()), body})
	if err != nil {
		server.ReplyStatus(w, err)
		return
	}
	server.Reply(w, http.StatusCreated, answer)
}

// read decodes a review of one kind.
func (q asked) read(kind, apiVersion string, into any, is func() (gotKind, gotVersion string)) error {
	if err := json.Unmarshal(q.body, into); err != nil {
		return apierrors.NewBadRequest("reading the review: " + err.Error())
	}
	if k, v := is(); k != kind || v != apiVersion {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %.40q of %.40q: want %s of %s", k, v, kind, apiVersion))
	}
	return nil
}

func (a *API) whoAmI(q asked) (any, error) {
	var r authentication.SelfSubjectReview
	err := q.read("SelfSubjectReview", authentication.SchemeGroupVersion.String(), &r, func() (string, string) { return r.Kind, r.APIVersion })
	r.Status.UserInfo = authentication.UserInfo{Username: q.user.Name, Groups: q.user.Groups}
	return r, err
}

func (a *API) mayI(q asked) (any, error) {
	var r authorization.SelfSubjectAccessReview
	err := q.read("SelfSubjectAccessReview", authorization.SchemeGroupVersion.String(), &r, func() (string, string) { return r.Kind, r.APIVersion })
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
	r.Status = authorization.SubjectAccessReviewStatus{Allowed: a.Authorizer.Allows(q.user, of)}
	return r, nil
}

func (a *API) whatMayI(q asked) (any, error) {
	var r authorization.SelfSubjectRulesReview
	err := q.read("SelfSubjectRulesReview", authorization.SchemeGroupVersion.String(), &r, func() (string, string) { return r.Kind, r.APIVersion })
	if err != nil {
		return nil, err
	}
	if r.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	r.Status = authorization.SubjectRulesReviewStatus{ResourceRules: []authorization.ResourceRule{}, NonResourceRules: []authorization.NonResourceRule{}}
	for _, rule := range a.Authorizer.Rules(q.user, r.Spec.Namespace) {
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
