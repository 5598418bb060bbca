package pull_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"podd/manifest"
	"podd/manifest/decode"
	"podd/manifest/refs"
	"podd/reconcile/effect"
	"podd/reconcile/pull"
	"podd/runtime/runtimetest"
	"podd/runtime/runtimetest/recording"
)

// TestKubeletPulls checks that podd and the kubelet send the same pull requests for the
// same imagePullSecrets. The registry rejects users with names that begin with "wrong".
func TestKubeletPulls(t *testing.T) {
	on, pods := recording.Read(t, "../../testdata/render/kubelet-api.jsonl.gz")
	set := &manifest.Set{ObjectsBySource: map[string]manifest.Objects{"": decode.File([]byte(on.Objects), decode.Options{}).Objects}, CompleteSources: map[string]bool{"": true}}
	comparisons, used := 0, map[string]bool{}
	for _, k := range pods {
		f := decode.File(k.Manifest, decode.Options{})
		if len(k.Pulls) > 0 && len(f.Pods) == 0 {
			t.Fatalf("%s: got no pod, want one: %v", k.Manifest, f.Problems)
		}
		// The kubelet also pulls the image of an init container, although the image is on the node,
		// because it verifies the credentials of the pod (KEP-2535). The test ignores these pulls.
		k.Pulls = slices.DeleteFunc(k.Pulls, func(p recording.Pull) bool {
			return slices.ContainsFunc(f.Pods[0].Object.Spec.InitContainers, func(c v1.Container) bool { return c.Image == p.Image })
		})
		if len(k.Pulls) == 0 {
			continue
		}
		comparisons++
		run(t, pull.Options{}, func(b *fixture) {
			got := b.pullRequests(f.Pods[0], refs.Resolve(f.Pods[0], set, "salt", nil))
			image := f.Pods[0].Object.Spec.Containers[0].Image
			if d, differs := pullDiffers[image]; differs {
				used[image] = true
				if diff := cmp.Diff(d.pulls, got); diff != "" || d.why == "" {
					t.Errorf("%s: pull requests of podd differ from those in pullDiffers, which must have a reason (-want +got):\n%s", k.Manifest, diff)
				}
			} else if diff := cmp.Diff(k.Pulls, got); diff != "" {
				t.Errorf("%s: pull requests differ (-kubelet +podd):\n%s", k.Manifest, diff)
			}
		})
	}
	if comparisons < 20 || len(used) != len(pullDiffers) {
		t.Errorf("got %d compared pods, want at least 20; got images %v of pullDiffers, want all %d", comparisons, slices.Sorted(maps.Keys(used)), len(pullDiffers))
	}
}

// pullDiffers contains the intended differences between podd's pulls and the kubelet's pulls, by
// image.
var pullDiffers = map[string]struct {
	why   string
	pulls []recording.Pull
}{
	"registry.example/teams/app:1": {
		"credentials for registry.example/team are not sent for registry.example/teams, which only has the same prefix",
		[]recording.Pull{{Image: "registry.example/teams/app:1", Auth: map[string]any{"username": "anna", "password": "one"}}},
	},
	"token.example/app:1": {
		"docker login stores an identity token if the registry issues one; the kubelet supports only user and password",
		[]recording.Pull{{Image: "token.example/app:1", Auth: map[string]any{"identity_token": "four"}}},
	},
	"both.example/app:1": {
		"if there is an identity token, the user is a placeholder",
		[]recording.Pull{{Image: "both.example/app:1", Auth: map[string]any{"identity_token": "six"}}},
	},
	"docker.io/library/app": {
		"the runtime adds :latest to a name without a tag, and reports the image with the name of the manifest",
		[]recording.Pull{{Image: "docker.io/library/app", Auth: map[string]any{"username": "hans", "password": "ten"}}},
	},
}

// pullRequests pulls the image of a pod and returns the pull requests.
func (b *fixture) pullRequests(p *manifest.Pod, s *refs.Resolved) (all []recording.Pull) {
	b.t.Helper()
	c := &p.Object.Spec.Containers[0]
	b.remote(c.Image, nil)
	b.Inject(runtimetest.Fault{
		Method: "PullImage", Err: errors.New("failed to authorize: 401 Unauthorized"),
		Match: func(q any) bool { return strings.HasPrefix(q.(*cri.PullImageRequest).GetAuth().GetUsername(), "wrong") },
	})
	var secrets []*v1.Secret
	for _, ref := range p.Object.Spec.ImagePullSecrets {
		if one := s.Secret(ref.Name); one != nil {
			secrets = append(secrets, one)
		}
	}
	if _, err := b.Ensure(b.t.Context(), effect.ImageRequest{Image: c.Image, Policy: string(c.ImagePullPolicy), Secrets: secrets}, func() {}); err != nil {
		b.t.Error(err)
	}
	for _, c := range b.Calls("PullImage") {
		q := c.Request.(*cri.PullImageRequest)
		one := recording.Pull{Image: q.Image.Image}
		text, err := json.Marshal(q.Auth)
		if err == nil {
			err = json.Unmarshal(text, &one.Auth)
		}
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}
