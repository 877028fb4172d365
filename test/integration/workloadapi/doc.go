// SPDX-License-Identifier: Apache-2.0

// Package workloadapi tests the admission of grove.io objects by a real API
// server: the CRDs alone, and with Muster's webhooks. Controllers run only in
// control planes of their own: TestInstallAndUninstall, TestTopologyOfAWorkload.
package workloadapi
