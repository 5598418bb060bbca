package manifest

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/dump"
)

// KubeletHash returns the hash by which a kubelet identifies a container, in the format it
// stores: a hash of name and image. If a container of one of its pods has a different hash,
// the kubelet kills it and starts a new one, whatever the restart policy is.
func KubeletHash(c *v1.Container) string {
	text, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		return "" // cannot happen: strings always marshal
	}
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(text)))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
