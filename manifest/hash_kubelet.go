package manifest

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/dump"
)

// KubeletHash returns the hash by which a kubelet identifies a version of a container: a hash
// of name and image, in the format that the kubelet stores. If the hash of a running container
// differs, the kubelet kills the container and starts a new one, whatever the restart policy
// is.
func KubeletHash(c *v1.Container) string {
	text, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		return "" // cannot happen: strings always marshal
	}
	h := fnv.New32a()
	h.Write([]byte(dump.ForHash(text)))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
