# SPDX-License-Identifier: Apache-2.0
import standin

standin.paddle_launch()
