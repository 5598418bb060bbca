package config

import (
	"cmp"

	kubelet "k8s.io/kubelet/config/v1beta1"

	"podd/reconcile/pull/verify"
)

// gateVerifyCredentials is the feature gate of the verification of credentials for images that are on
// the node. It is enabled by default.
const gateVerifyCredentials = "KubeletEnsureSecretPulledImages"

// credentialVerification returns the policy of the verification, or nil if its feature gate is
// disabled.
func credentialVerification(k *kubelet.KubeletConfiguration) *verify.Policy {
	if !isGateEnabled(k, gateVerifyCredentials) {
		return nil
	}
	return &verify.Policy{
		Mode:      cmp.Or(k.ImagePullCredentialsVerificationPolicy, kubelet.NeverVerifyPreloadedImages),
		Allowlist: k.PreloadedImagesVerificationAllowlist,
	}
}

// checkCredentialVerification checks the policy and the allowlist with the rules of the kubelet.
func (c *checker) checkCredentialVerification() {
	const policyField, listField = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
	policy, list := c.kubelet.ImagePullCredentialsVerificationPolicy, c.kubelet.PreloadedImagesVerificationAllowlist
	switch isDisabled := !isGateEnabled(c.kubelet, gateVerifyCredentials); {
	case isDisabled && policy != "":
		c.errorf(policyField, "needs the feature gate %s, which is disabled", gateVerifyCredentials)
	case isDisabled && len(list) > 0:
		c.errorf(listField, "needs the feature gate %s, which is disabled", gateVerifyCredentials)
	case len(list) > 0 && policy != kubelet.NeverVerifyAllowlistedImages:
		c.errorf(listField, "needs %s: %s", policyField, kubelet.NeverVerifyAllowlistedImages)
	}
	for i, pattern := range list {
		if err := verify.CheckPattern(pattern); err != nil {
			c.errorf(joinIndex(listField, i), "invalid image pattern %q: %v", pattern, err)
		}
	}
}
