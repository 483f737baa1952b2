# SPDX-License-Identifier: BSD-3-Clause
"""`headway report`: one page that explains a run of a Headway program."""
