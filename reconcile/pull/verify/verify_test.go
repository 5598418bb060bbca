package verify_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	"pgregory.net/rapid"

	"podd/reconcile/pull/verify"
)

const image = "registry.example/team/web:1"

// secret returns a Secret of the namespace "team".
func secret(uid, name, hash string) kubelet.ImagePullSecret {
	return kubelet.ImagePullSecret{UID: uid, Namespace: "team", Name: name, CredentialHash: hash}
}

func account(uid string) *kubelet.ImagePullServiceAccount {
	return &kubelet.ImagePullServiceAccount{UID: uid, Namespace: "team", Name: "builder"}
}

// recorded returns the records of an image that was pulled from the repository of image.
func recorded(c kubelet.ImagePullCredentials) verify.Records {
	return verify.Records{State: verify.Recorded, Credentials: map[string]kubelet.ImagePullCredentials{"registry.example/team/web": c}}
}

func TestDecide(t *testing.T) {
	preloaded := &verify.Policy{Mode: kubelet.NeverVerifyPreloadedImages}
	always := &verify.Policy{Mode: kubelet.AlwaysVerify}
	never := &verify.Policy{Mode: kubelet.NeverVerify}
	allowed := &verify.Policy{Mode: kubelet.NeverVerifyAllowlistedImages, Allowlist: []string{"registry.example/team/*"}}
	notAllowed := &verify.Policy{Mode: kubelet.NeverVerifyAllowlistedImages, Allowlist: []string{"registry.example/team"}}
	one := secret("uid1", "one", "hash1")
	byOne := recorded(kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{one}})
	byAccount := recorded(kubelet.ImagePullCredentials{KubernetesServiceAccounts: []kubelet.ImagePullServiceAccount{*account("uid1")}})
	byNode := recorded(kubelet.ImagePullCredentials{NodePodsAccessible: true})
	other := verify.Records{State: verify.Recorded, Credentials: map[string]kubelet.ImagePullCredentials{"registry.example/other": {NodePodsAccessible: true}}}
	unreadable := verify.Records{State: verify.Unreadable}
	type secrets = []kubelet.ImagePullSecret
	var all secrets
	for i := range verify.MaxCredentials {
		all = append(all, secret("uid", fmt.Sprint(i), "hash"))
	}
	full := recorded(kubelet.ImagePullCredentials{KubernetesSecrets: all})
	for name, test := range map[string]struct {
		policy  *verify.Policy
		absent  bool
		records verify.Records
		secrets secrets
		account *kubelet.ImagePullServiceAccount
		want    verify.Action
		result  verify.Result
		learned *kubelet.ImagePullSecret
	}{
		"absent":                                      {policy: preloaded, absent: true, want: verify.Pull},
		"the feature gate is disabled":                {records: byOne, want: verify.Use},
		"preloaded":                                   {policy: preloaded, want: verify.Use, result: verify.PolicyAllowed},
		"preloaded, and all images are verified":      {policy: always, want: verify.Pull, result: verify.MustAuthenticate},
		"preloaded, and allowed":                      {policy: allowed, want: verify.Use, result: verify.PolicyAllowed},
		"preloaded, and not allowed":                  {policy: notAllowed, want: verify.Pull, result: verify.MustAuthenticate},
		"pulled, and no image is verified":            {policy: never, records: byOne, want: verify.Use, result: verify.PolicyAllowed},
		"pulled, and allowed":                         {policy: allowed, records: byOne, want: verify.Use, result: verify.PolicyAllowed},
		"pulled with a Secret, and the pod has none":  {policy: preloaded, records: byOne, want: verify.Pull, result: verify.MustAuthenticate},
		"the same Secret":                             {policy: preloaded, records: byOne, secrets: secrets{one}, want: verify.Use, result: verify.RecordFound},
		"the same Secret, and all are verified":       {policy: always, records: byOne, secrets: secrets{one}, want: verify.Use, result: verify.RecordFound},
		"the same Secret with other content":          {policy: preloaded, records: byOne, secrets: secrets{secret("uid1", "one", "hash2")}, want: verify.Use, result: verify.RecordFound, learned: new(secret("uid1", "one", "hash2"))},
		"another Secret with the same content":        {policy: preloaded, records: byOne, secrets: secrets{secret("uid2", "two", "hash1")}, want: verify.Use, result: verify.RecordFound, learned: new(secret("uid2", "two", "hash1"))},
		"another Secret with other content":           {policy: preloaded, records: byOne, secrets: secrets{secret("uid2", "two", "hash2")}, want: verify.Pull, result: verify.MustAuthenticate},
		"a new Secret with the same name":             {policy: preloaded, records: byOne, secrets: secrets{secret("uid2", "one", "hash2")}, want: verify.Pull, result: verify.MustAuthenticate},
		"the second of two Secrets":                   {policy: preloaded, records: byOne, secrets: secrets{secret("uid2", "two", "hash2"), one}, want: verify.Use, result: verify.RecordFound},
		"no hash was recorded":                        {policy: preloaded, records: recorded(kubelet.ImagePullCredentials{KubernetesSecrets: secrets{secret("uid1", "one", "")}}), secrets: secrets{secret("uid2", "two", "")}, want: verify.Pull, result: verify.MustAuthenticate},
		"pulled with credentials of the node":         {policy: preloaded, records: byNode, want: verify.Use, result: verify.RecordFound},
		"credentials of the node, all are verified":   {policy: always, records: byNode, want: verify.Use, result: verify.RecordFound},
		"pulled from another repository":              {policy: preloaded, records: other, want: verify.Pull, result: verify.MustAuthenticate},
		"unknown credentials":                         {policy: preloaded, records: verify.Records{State: verify.Recorded}, secrets: secrets{one}, want: verify.Pull, result: verify.MustAuthenticate},
		"an interrupted pull":                         {policy: preloaded, records: verify.Records{State: verify.Interrupted}, secrets: secrets{one}, want: verify.Pull, result: verify.MustAuthenticate},
		"the same service account":                    {policy: preloaded, records: byAccount, account: account("uid1"), want: verify.Use, result: verify.RecordFound},
		"a new service account with the same name":    {policy: preloaded, records: byAccount, account: account("uid2"), want: verify.Pull, result: verify.MustAuthenticate},
		"an unreadable record":                        {policy: preloaded, records: unreadable, want: verify.Pull, result: verify.CheckFailed},
		"an unreadable record, and the image allowed": {policy: allowed, records: unreadable, want: verify.Pull, result: verify.CheckFailed},
		"an unreadable record, and none are verified": {policy: never, records: unreadable, want: verify.Pull, result: verify.CheckFailed},
		"a full record, and another Secret":           {policy: preloaded, records: full, secrets: secrets{secret("uid", "new", "hash")}, want: verify.Use, result: verify.RecordFound},
		"a full record, and the Secret changed":       {policy: preloaded, records: full, secrets: secrets{secret("uid", "7", "changed")}, want: verify.Use, result: verify.RecordFound, learned: new(secret("uid", "7", "changed"))},
		"an unknown policy":                           {policy: &verify.Policy{Mode: "Sometimes"}, want: verify.Pull, result: verify.MustAuthenticate},
	} {
		t.Run(name, func(t *testing.T) {
			in := verify.Input{
				Image: image, PullPolicy: v1.PullIfNotPresent, IsPresent: !test.absent, Policy: test.policy,
				Records: test.records, Secrets: test.secrets, ServiceAccount: test.account,
			}
			want := verify.Decision{Action: test.want, Result: test.result, SecretToRecord: test.learned}
			if diff := cmp.Diff(want, verify.Decide(in)); diff != "" {
				t.Errorf("IfNotPresent (-want +got):\n%s", diff)
			}
			in.PullPolicy = v1.PullNever
			if want.Action == verify.Pull {
				want.Action = verify.Refuse
			}
			if diff := cmp.Diff(want, verify.Decide(in)); diff != "" {
				t.Errorf("Never (-want +got):\n%s", diff)
			}
			in.PullPolicy = v1.PullAlways
			if got := verify.Decide(in); got != (verify.Decision{Action: verify.Pull}) {
				t.Errorf("Always: got %+v, want a pull", got)
			}
		})
	}
}

// TestDecideOffline checks that only an unreadable record changes the decision if the registry is
// unreachable.
func TestDecideOffline(t *testing.T) {
	byOne := recorded(kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{secret("uid1", "one", "hash1")}})
	for name, test := range map[string]struct {
		mode    kubelet.ImagePullCredentialsVerificationPolicy
		records verify.Records
		want    verify.Action
	}{
		"preloaded":                        {kubelet.NeverVerifyPreloadedImages, verify.Records{}, verify.Use},
		"preloaded, and all are verified":  {kubelet.AlwaysVerify, verify.Records{}, verify.Pull},
		"unreadable":                       {kubelet.NeverVerifyPreloadedImages, verify.Records{State: verify.Unreadable}, verify.Use},
		"unreadable, and all are verified": {kubelet.AlwaysVerify, verify.Records{State: verify.Unreadable}, verify.Pull},
		"pulled with a Secret":             {kubelet.NeverVerifyPreloadedImages, byOne, verify.Pull},
		"an interrupted pull":              {kubelet.NeverVerifyPreloadedImages, verify.Records{State: verify.Interrupted}, verify.Pull},
	} {
		for _, policy := range []v1.PullPolicy{v1.PullAlways, v1.PullIfNotPresent} {
			in := verify.Input{Image: image, PullPolicy: policy, IsPresent: true, Policy: &verify.Policy{Mode: test.mode}, Records: test.records}
			if got := verify.DecideOffline(in); got.Action != test.want {
				t.Errorf("%s, %s: got %+v, want action %d", name, policy, got, test.want)
			}
		}
	}
}

// TestDecide_OtherName checks an image that was pulled from one repository and has other names,
// too. A pod without credentials may use the image only under a name with which it was preloaded.
func TestDecide_OtherName(t *testing.T) {
	names := []string{"registry.example/team/web:1", "registry.example/team/web@sha256:d", "docker.io/library/web:1", "docker.io/library/web@sha256:d", "docker.io/library/web:latest"}
	byTeam := map[string]kubelet.ImagePullCredentials{"registry.example/team/web": {}}
	for name, test := range map[string]struct {
		image    string
		recorded map[string]kubelet.ImagePullCredentials
		want     verify.Action
	}{
		"the preloaded name":             {"docker.io/library/web:1", byTeam, verify.Use},
		"the preloaded short name":       {"web:1", byTeam, verify.Use},
		"the preloaded name, no tag":     {"web", byTeam, verify.Use},
		"the preloaded name by digest":   {"web@sha256:d", byTeam, verify.Use},
		"a name that is not listed":      {"web:2", byTeam, verify.Pull},
		"the name with tag and digest":   {"web:1@sha256:d", byTeam, verify.Pull},
		"the pulled name":                {"registry.example/team/web:1", byTeam, verify.Pull},
		"the pulled name by digest":      {"registry.example/team/web@sha256:d", byTeam, verify.Pull},
		"the ID":                         {"sha256:1", byTeam, verify.Pull},
		"a short ID":                     {"1234", byTeam, verify.Pull},
		"an unknown repository":          {"web:1", nil, verify.Pull},
		"pulled with a short name":       {"docker.io/library/web:1", map[string]kubelet.ImagePullCredentials{"web": {}}, verify.Pull},
		"pulled with an alias":           {"registry.example/team/web:1", map[string]kubelet.ImagePullCredentials{"alias": {}}, verify.Pull},
		"pulled with several names":      {"web:1", map[string]kubelet.ImagePullCredentials{"registry.example/team/web": {}, "index.docker.io/library/web": {}}, verify.Pull},
		"pulled with a name that is old": {"web:1", map[string]kubelet.ImagePullCredentials{"registry.example/old": {}}, verify.Pull},
	} {
		t.Run(name, func(t *testing.T) {
			in := verify.Input{
				Image: test.image, PullPolicy: v1.PullIfNotPresent, IsPresent: true, Names: names, Policy: &verify.Policy{Mode: kubelet.NeverVerifyPreloadedImages},
				Records: verify.Records{State: verify.Recorded, Credentials: test.recorded},
			}
			if got := verify.Decide(in); got.Action != test.want {
				t.Errorf("got %+v, want action %d", got, test.want)
			}
			in.Policy.Mode = kubelet.AlwaysVerify
			if got := verify.Decide(in); got.Action != verify.Pull {
				t.Errorf("AlwaysVerify: got %+v, want a pull", got)
			}
		})
	}
}

func TestCheckPattern(t *testing.T) {
	for pattern, valid := range map[string]bool{
		"registry.example/team/web": true, "web": true, "registry.example:5000/web": true, "[::1]:5000/web": true, "a__b/c--d": true,
		"registry.example/*": true, "registry.example/team/*": true,
		"": false, " web": false, "web ": false, "*": false, "/*": false, "registry.example/web*": false, "*.example/web": false,
		"registry.example/*/web": false, "registry.example/web:1": false, "registry.example:5000": false, "web@sha256:abc": false,
		"registry.example/Web": false, "registry.example//web": false, "registry.example/": false, "a b/web": false,
	} {
		if err := verify.CheckPattern(pattern); (err == nil) != valid {
			t.Errorf("CheckPattern(%q) = %v, want valid: %t", pattern, err, valid)
		}
	}
}

func TestRepository(t *testing.T) {
	for image, want := range map[string]string{
		"web": "web", "web:1": "web", "registry.example:5000/web": "registry.example:5000/web", "registry.example:5000/web:1": "registry.example:5000/web",
		"web@sha256:abc": "web", "registry.example/web:1@sha256:abc": "registry.example/web", "": "", "sha256:abc": "sha256",
	} {
		if got := verify.Repository(image); got != want {
			t.Errorf("Repository(%q) = %q, want %q", image, got, want)
		}
	}
}

// drawSecret returns one of a few Secrets, so that many of them match.
func drawSecret(rt *rapid.T, label string) kubelet.ImagePullSecret {
	return secret(rapid.SampledFrom([]string{"u1", "u2"}).Draw(rt, label+" uid"), rapid.SampledFrom([]string{"one", "two"}).Draw(rt, label+" name"),
		rapid.SampledFrom([]string{"", "h1", "h2", "h3"}).Draw(rt, label+" hash"))
}

// drawCredentials returns the credentials of a pull.
func drawCredentials(rt *rapid.T, label string) kubelet.ImagePullCredentials {
	switch rapid.IntRange(0, 6).Draw(rt, label) {
	case 0:
		return kubelet.ImagePullCredentials{NodePodsAccessible: true}
	case 1:
		return kubelet.ImagePullCredentials{}
	case 2:
		return kubelet.ImagePullCredentials{KubernetesServiceAccounts: []kubelet.ImagePullServiceAccount{*account(rapid.SampledFrom([]string{"a", "b"}).Draw(rt, label+" account"))}}
	}
	return kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{drawSecret(rt, label)}}
}

func drawRecords(rt *rapid.T) verify.Records {
	r := verify.Records{State: rapid.SampledFrom([]verify.State{verify.Preloaded, verify.Interrupted, verify.Recorded, verify.Unreadable}).Draw(rt, "state")}
	if r.State == verify.Recorded {
		for i := range rapid.IntRange(0, 4).Draw(rt, "pulls") {
			r.Credentials, _ = verify.Merge(r.Credentials, "registry.example/team/web", drawCredentials(rt, fmt.Sprint("pull ", i)))
		}
	}
	return r
}

func drawInput(rt *rapid.T) verify.Input {
	in := verify.Input{
		Image:      rapid.SampledFrom([]string{image, "registry.example/other:1"}).Draw(rt, "image"),
		PullPolicy: rapid.SampledFrom([]v1.PullPolicy{v1.PullAlways, v1.PullIfNotPresent, v1.PullNever}).Draw(rt, "pull policy"),
		IsPresent:  rapid.Bool().Draw(rt, "present"),
		Policy: &verify.Policy{Mode: rapid.SampledFrom([]kubelet.ImagePullCredentialsVerificationPolicy{
			kubelet.NeverVerify, kubelet.NeverVerifyPreloadedImages, kubelet.NeverVerifyAllowlistedImages, kubelet.AlwaysVerify}).Draw(rt, "mode")},
		Records: drawRecords(rt),
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "secrets") {
		in.Secrets = append(in.Secrets, drawSecret(rt, fmt.Sprint("secret ", i)))
	}
	return in
}

// TestDecide_Laws checks properties of all decisions.
func TestDecide_Laws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := drawInput(rt)
		got := verify.Decide(in)
		if in.PullPolicy == v1.PullNever && got.Action == verify.Pull || in.PullPolicy != v1.PullNever && got.Action == verify.Refuse {
			rt.Fatalf("got %+v, want an action that the pull policy permits", got)
		}
		if got.Action == verify.Use && (!in.IsPresent || in.PullPolicy == v1.PullAlways) {
			rt.Fatalf("image that is absent or must always be pulled: got %+v, want a pull", got)
		}
		if got.SecretToRecord != nil && got.Action != verify.Use {
			rt.Fatalf("got %+v, want no Secret to record for a pod that may not use the image", got)
		}
		more := in
		more.Secrets = append([]kubelet.ImagePullSecret{drawSecret(rt, "additional")}, in.Secrets...)
		if with := verify.Decide(more); got.Action == verify.Use && with.Action != verify.Use {
			rt.Fatalf("got %+v with an additional Secret, want %+v as before", with, got)
		}
		weaker := in
		weaker.Policy = &verify.Policy{Mode: kubelet.NeverVerify}
		if with := verify.Decide(weaker); got.Action == verify.Use && with.Action != verify.Use {
			rt.Fatalf("got %+v without verification, want %+v as before", with, got)
		}
		in.PullPolicy, in.IsPresent, in.Policy = v1.PullIfNotPresent, true, &verify.Policy{Mode: kubelet.AlwaysVerify}
		for _, s := range in.Secrets {
			merged, _ := verify.Merge(in.Records.Credentials, verify.Repository(in.Image), kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{s}})
			after := in
			after.Records = verify.Records{State: verify.Recorded, Credentials: merged}
			if got := verify.Decide(after); got.Action != verify.Use {
				rt.Fatalf("got %+v after a pull with %+v; want no second pull", got, s)
			}
		}
	})
}

// TestMerge_Laws checks that Merge is idempotent, bounded, and does not modify its input.
func TestMerge_Laws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var all map[string]kubelet.ImagePullCredentials
		for i := range rapid.IntRange(1, 30).Draw(rt, "pulls") {
			repository, added := fmt.Sprint("web", rapid.IntRange(0, 25).Draw(rt, "repository")), drawCredentials(rt, fmt.Sprint("pull ", i))
			before := fmt.Sprint(all)
			merged, changed := verify.Merge(all, repository, added)
			if fmt.Sprint(all) != before {
				rt.Fatalf("Merge modified its input: got %[2]v, want %[1]s", before, all)
			}
			if again, more := verify.Merge(merged, repository, added); more || !cmp.Equal(again, merged) {
				rt.Fatalf("second Merge: got %v, want %v", again, merged)
			}
			if !changed && !cmp.Equal(merged, all) {
				rt.Fatalf("Merge: got %v from %v and changed false; want changed true", merged, all)
			}
			if len(merged) > verify.MaxRepositories {
				rt.Fatalf("got %d repositories, want at most %d", len(merged), verify.MaxRepositories)
			}
			all = merged
		}
	})
}

// TestMerge_Limit checks that a Secret that was created again replaces its predecessor if the record
// is full.
func TestMerge_Limit(t *testing.T) {
	var all map[string]kubelet.ImagePullCredentials
	add := func(s kubelet.ImagePullSecret) {
		all, _ = verify.Merge(all, "web", kubelet.ImagePullCredentials{KubernetesSecrets: []kubelet.ImagePullSecret{s}})
	}
	for i := range verify.MaxCredentials {
		add(secret("old", fmt.Sprintf("%03d", i), "h"))
	}
	add(secret("new", "050", "h"))
	got := all["web"].KubernetesSecrets
	if len(got) != verify.MaxCredentials || got[50] != secret("new", "050", "h") || got[0] != secret("old", "000", "h") {
		t.Errorf("got %d Secrets, the 50th %+v; want the new one to replace the old one", len(got), got[50])
	}
	add(secret("new", "999", "h"))
	if got := all["web"].KubernetesSecrets; len(got) != verify.MaxCredentials || got[len(got)-1].Name != "999" {
		t.Errorf("got %d Secrets, the last %+v; want the added one", len(got), got[len(got)-1])
	}
}
