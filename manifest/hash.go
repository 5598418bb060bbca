package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// hashVersion is the prefix of a hash. Do not change the inputs of the hashes in this file. Any
// change would give every pod on every node a new UID and would therefore restart all pods. If a
// change is necessary, increase the version and keep the code for "v1:" hashes.
const hashVersion = "v1:"

// Hashes identify a version of a pod, of its sandbox and of its containers.
type Hashes struct {
	Pod, Sandbox string                   // values of Pod.Hash and Pod.SandboxHash
	Containers   map[string]ContainerHash // value of Pod.ContainerHashes

	versionValues []any // the values from which the hash in the field Pod is computed
}

// HashManifest returns the hashes of a pod of a manifest. userPod is the pod as the user wrote it,
// without defaults. The parameter pod is the same pod with defaults. isWrittenByAPI has the meaning
// of decode.Options.IsWrittenByAPI.
func HashManifest(userPod map[string]any, pod *v1.Pod, isWrittenByAPI bool) Hashes {
	userPod = canonicalize(userPod)
	hashInput := userPod
	if isWrittenByAPI {
		hashInput = immutablePart(userPod)
	}
	version := versionInput(hashInput, pod)
	return Hashes{
		Pod: hashVersion + Digest("pod", version), Sandbox: hashSandbox(userPod),
		Containers: hashContainers(userPod, &pod.Spec), versionValues: version,
	}
}

// UID returns the UID of a pod with the given key on the given node. It is for pods of
// manifests without metadata.uid.
func (h Hashes) UID(node string, key types.NamespacedName) types.UID {
	return types.UID(Digest("uid", node, key.Namespace, key.Name, h.versionValues))
}

// HashAPI returns the hashes of a pod from an API server. The hashes of the pod and of its
// sandbox depend only on the UID of the pod.
func HashAPI(pod *v1.Pod) Hashes {
	return Hashes{
		Pod: hashVersion + Digest("api", pod.UID), Sandbox: hashVersion + Digest("api sandbox", pod.UID),
		Containers: hashImages(&pod.Spec),
	}
}

// sandboxFields lists the fields of a pod's spec that affect its sandbox.
var sandboxFields = []string{
	"dnsConfig", "dnsPolicy", "hostIPC", "hostNetwork", "hostPID", "hostUsers", "hostname", "hostnameOverride",
	"os", "overhead", "runtimeClassName", "securityContext", "setHostnameAsFQDN", "shareProcessNamespace", "subdomain",
}

// ServerMetadataFields lists the fields of metadata that an API server sets. An exported manifest
// contains these fields. podd ignores them, as it ignores status.
var ServerMetadataFields = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink",
}

// WithoutServerFields returns a shallow copy of a pod without status and without
// ServerMetadataFields, because an exported manifest may contain these fields. tree is the pod as
// JSON values.
func WithoutServerFields(tree map[string]any) map[string]any {
	pod := maps.Clone(tree)
	delete(pod, "status")
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, key := range ServerMetadataFields {
			delete(meta, key)
		}
		pod["metadata"] = meta
	}
	return pod
}

// canonicalize returns a copy of a pod without nulls and without metadata that podd does not use.
// It sets kind and apiVersion, because an item of a PodList may omit them. userPod is the pod as
// the user wrote it.
func canonicalize(userPod map[string]any) map[string]any {
	pod := withoutNulls(userPod).(map[string]any)
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	if meta, ok := pod["metadata"].(map[string]any); ok {
		delete(meta, "finalizers")
		delete(meta, "generateName")
	}
	return pod
}

// immutablePart returns a pod without the fields that an API server allows to change while the
// pod runs: labels, annotations, images and mutableSpecFields.
func immutablePart(userPod map[string]any) map[string]any {
	pod := maps.Clone(userPod)
	if meta, ok := pod["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		delete(meta, "annotations")
		delete(meta, "labels")
		pod["metadata"] = meta
	}
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return pod
	}
	spec = maps.Clone(spec)
	for _, name := range mutableSpecFields {
		delete(spec, name)
	}
	for _, list := range []string{"initContainers", "containers"} {
		if items, ok := spec[list].([]any); ok {
			spec[list] = mapEach(items, withoutImage)
		}
	}
	pod["spec"] = spec
	return pod
}

// mutableSpecFields lists the fields of spec, other than images, that an API server allows to
// change.
var mutableSpecFields = []string{"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"}

func withoutImage(v any) any {
	c, ok := v.(map[string]any)
	if !ok {
		return v
	}
	c = maps.Clone(c)
	delete(c, "image")
	return c
}

// versionInput returns the values that distinguish two versions of a pod. These are the fields that
// the user wrote, and the QoS class, because the parent of the cgroup depends on the class. If the
// restart policy is Always, versionInput omits the amounts of cpu and memory of the containers,
// because podd changes these amounts in place. With other restart policies the pod can finish. In
// this case versionInput includes the amounts, so that the pod runs again after an amount has
// changed.
func versionInput(userPod map[string]any, p *v1.Pod) []any {
	class := QoS(p)
	if p.Spec.RestartPolicy != v1.RestartPolicyAlways {
		return []any{userPod, class}
	}
	pod := maps.Clone(userPod)
	if spec, ok := pod["spec"].(map[string]any); ok {
		spec = maps.Clone(spec)
		for _, list := range []string{"initContainers", "containers"} {
			if items, ok := spec[list].([]any); ok {
				spec[list] = mapEach(items, withoutAmounts)
			}
		}
		pod["spec"] = spec
	}
	return []any{pod, class}
}

// withoutAmounts returns a container in which maskAmounts has replaced the amounts of limits
// and requests.
func withoutAmounts(v any) any {
	c, _ := v.(map[string]any)
	r, ok := c["resources"].(map[string]any)
	if !ok {
		return v
	}
	c, r = maps.Clone(c), maps.Clone(r)
	for _, list := range []string{"limits", "requests"} {
		if amounts, ok := r[list].(map[string]any); ok {
			r[list] = maskAmounts(amounts)
		}
	}
	c["resources"] = r
	return c
}

// maskAmounts returns a copy of amounts in which true replaces the amounts of cpu and memory.
// It keeps zero, because zero means that there is no limit.
func maskAmounts(amounts map[string]any) map[string]any {
	amounts = maps.Clone(amounts)
	for _, name := range []string{string(v1.ResourceCPU), string(v1.ResourceMemory)} {
		v, isSet := amounts[name]
		if q, err := resource.ParseQuantity(fmt.Sprint(v)); isSet && err == nil && !q.IsZero() {
			amounts[name] = true // differs from every valid amount
		}
	}
	return amounts
}

func mapEach(items []any, change func(any) any) []any {
	changedItems := make([]any, len(items))
	for i := range items {
		changedItems[i] = change(items[i])
	}
	return changedItems
}

func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		members := make(map[string]any, len(v))
		for key, member := range v {
			if member != nil {
				members[key] = withoutNulls(member)
			}
		}
		return members
	case []any:
		return mapEach(v, withoutNulls)
	}
	return v
}

// Digest returns a digest of the JSON of parts: the first 128 bits of the SHA-256 digest, in
// hexadecimal. The JSON has sorted keys, no blanks, and numbers in their shortest form.
func Digest(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("manifest: encoding the input of a hash: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// hashSandbox hashes the fields that affect a pod's sandbox. Labels and annotations are not
// included, because changes to them are applied without a restart.
func hashSandbox(userPod map[string]any) string {
	spec, _ := userPod["spec"].(map[string]any)
	meta, _ := userPod["metadata"].(map[string]any)
	fields := map[string]any{}
	for _, key := range sandboxFields {
		if v, ok := spec[key]; ok {
			fields[key] = v
		}
	}
	var ports []any
	privileged := false
	eachContainer(spec, func(_ string, c map[string]any) {
		ports = append(ports, c["ports"])
		security, _ := c["securityContext"].(map[string]any)
		privileged = privileged || security["privileged"] == true
	})
	return hashVersion + Digest("sandbox", meta["namespace"], meta["name"], fields, ports, privileged)
}

// hashContainers returns the hashes of all init and regular containers by name. userPod is the pod
// as the user wrote it. StartHash depends only on userPod, and Resources only on specWithDefaults.
func hashContainers(userPod map[string]any, specWithDefaults *v1.PodSpec) map[string]ContainerHash {
	sizes := containerSizes(specWithDefaults)
	spec, _ := userPod["spec"].(map[string]any)
	hashes := map[string]ContainerHash{}
	eachContainer(spec, func(list string, c map[string]any) {
		name, _ := c["name"].(string)
		startFields := make(map[string]any, len(c))
		for key, v := range c {
			if key != "resources" {
				startFields[key] = v
			}
		}
		hashes[name] = ContainerHash{
			StartHash: hashVersion + Digest("start", list, startFields),
			Resources: sizes[name],
		}
	})
	return hashes
}

func eachContainer(spec map[string]any, visit func(list string, container map[string]any)) {
	for _, list := range []string{"initContainers", "containers"} {
		items, _ := spec[list].([]any)
		for _, item := range items {
			if c, ok := item.(map[string]any); ok {
				visit(list, c)
			}
		}
	}
}

// hashImages returns hashes of all init and regular containers by name. As in the kubelet, the
// StartHash of a container depends only on its name and image.
func hashImages(spec *v1.PodSpec) map[string]ContainerHash {
	sizes, hashes := containerSizes(spec), map[string]ContainerHash{}
	for _, list := range [][]v1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			c := &list[i]
			hashes[c.Name] = ContainerHash{StartHash: hashVersion + Digest("api start", c.Name, c.Image), Resources: sizes[c.Name]}
		}
	}
	return hashes
}
