package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"podd/runtime/atomicfile"
)

const (
	intentKind, recordKind = "ImagePullIntent", "ImagePulledRecord"
	// apiVersion is the version of new files, as in the kubelet since Kubernetes 1.35.
	apiVersion = kubelet.GroupName + "/v1beta1"
)

// apiVersions contains the versions of files that podd reads. They have the same fields.
var apiVersions = []string{apiVersion, kubelet.GroupName + "/v1alpha1"}

// The maximum sizes of files. The size of an intent is limited by the length of an image name, and the
// size of a record by verify.MaxCredentials and verify.MaxRepositories.
const (
	maxIntentSize = 64 << 10
	maxRecordSize = 4 << 20
)

// encodeIntent returns the content of the file of an intent.
func encodeIntent(image string) ([]byte, error) {
	return json.Marshal(kubelet.ImagePullIntent{TypeMeta: metav1.TypeMeta{Kind: intentKind, APIVersion: apiVersion}, Image: image})
}

// encodeRecord returns the content of the file of a record.
func encodeRecord(id string, credentials map[string]kubelet.ImagePullCredentials) ([]byte, error) {
	return json.Marshal(kubelet.ImagePulledRecord{
		TypeMeta:        metav1.TypeMeta{Kind: recordKind, APIVersion: apiVersion},
		LastUpdatedTime: metav1.Time{Time: time.Now()}, ImageRef: id, CredentialMapping: credentials,
	})
}

// readIntent returns the name of the image in an intent. file is the name of the file in the directory
// dir.
func readIntent(dir, file string) (image string, err error) {
	path := filepath.Join(dir, file)
	data, err := atomicfile.Read(path, maxIntentSize)
	if err != nil {
		return "", err
	}
	image, err = decodeIntent(data)
	if err == nil && fileName(image) != file {
		err = errors.New("the file contains the intent of another image")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return image, nil
}

// decodeIntent returns the name of the image in an intent.
func decodeIntent(data []byte) (image string, err error) {
	var i kubelet.ImagePullIntent
	if err := decode(data, &i, &i.TypeMeta, intentKind); err != nil {
		return "", err
	}
	if i.Image == "" {
		return "", errors.New("the file contains no image")
	}
	return i.Image, nil
}

// readRecordOf reads the record of the image with this ID. The error is fs.ErrNotExist if there is no
// record.
func readRecordOf(path, id string) (kubelet.ImagePulledRecord, error) {
	r, err := readRecord(path)
	if err == nil && r.ImageRef != id {
		return kubelet.ImagePulledRecord{}, fmt.Errorf("%s: the file contains the record of another image", path)
	}
	return r, err
}

// readRecord reads the file of a record.
func readRecord(path string) (kubelet.ImagePulledRecord, error) {
	data, err := atomicfile.Read(path, maxRecordSize)
	if err != nil {
		return kubelet.ImagePulledRecord{}, err
	}
	r, err := decodeRecord(data)
	if err != nil {
		return kubelet.ImagePulledRecord{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// decodeRecord decodes a record. It ignores unknown fields, because a later kubelet may have written
// them.
func decodeRecord(data []byte) (kubelet.ImagePulledRecord, error) {
	var r kubelet.ImagePulledRecord
	if err := decode(data, &r, &r.TypeMeta, recordKind); err != nil {
		return kubelet.ImagePulledRecord{}, err
	}
	if r.ImageRef == "" {
		return kubelet.ImagePulledRecord{}, errors.New("the file contains no image")
	}
	return r, nil
}

// decode decodes an object and checks its kind and version. Its errors do not quote the file.
func decode(data []byte, object any, meta *metav1.TypeMeta, kind string) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, object); err != nil {
		return errors.New("the file is not valid JSON")
	}
	if meta.Kind != kind || !slices.Contains(apiVersions, meta.APIVersion) {
		return fmt.Errorf("the file is not an %s of a supported version", kind)
	}
	return nil
}
