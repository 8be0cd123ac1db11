# %% [markdown]
# # 1 · The reference table
#
# Four small graphs, eight gradients. Each one is computed by walking backwards, and measured a
# second time without any calculus: move one number a little, run everything again, see how much
# the result moves. Press **Next** (or →) and watch where every number comes from.

# %%
import minigrad as mg

# %% [markdown]
# ## mul
#
# Two arrays of one shape, multiplied cell by cell, then weighted and summed. The weight makes
# every cell count differently, so a wrong gradient cannot hide behind a row of ones.

# %%
x0 = mg.tensor(mg.lesson.input("x0", [[[-1, -0.5, 0], [0.5, 1, 1.5]]]), requires_grad=True)
x1 = mg.tensor(mg.lesson.input("x1", [[[1, 0.75, 0.5], [0.25, 0, -0.25]]]), requires_grad=True)
weight = mg.tensor([[[0.3, -1.2, 0.7], [2, -0.5, 1.1]]])
y = x0 * x1
z = y * weight
L = z.sum()
mg.show(L)


# %%
def mul(x0, x1):
    return ((x0 * x1) * weight).sum()


mg.gradcheck(mul, [x0, x1])

# %% [markdown]
# ## mul broadcast [1,1,3]
#
# Now `x1` has one row only. To meet the two rows of `x0` it is **copied** along axis 1. Whoever
# is copied hears from every copy: at the step *mul → x1* the two rows of the contribution are
# **added up**.

# %%
x0 = mg.tensor(mg.lesson.input("x0", [[[-1, -0.5, 0], [0.5, 1, 1.5]]]), requires_grad=True)
x1 = mg.tensor(mg.lesson.input("x1", [[[2, -1, 0.5]]]), requires_grad=True)
weight = mg.tensor([[[0.3, -1.2, 0.7], [2, -0.5, 1.1]]])
y = x0 * x1
z = y * weight
L = z.sum()
mg.show(L)


# %%
def mul_broadcast(x0, x1):
    return ((x0 * x1) * weight).sum()


mg.gradcheck(mul_broadcast, [x0, x1])

# %% [markdown]
# ## matmul
#
# A matrix product is no cell-by-cell op: every cell of the result is a row times a column. Its
# rule is again a matrix product. Hover over a cell of the contribution to see the row and the
# column it is made of.

# %%
x0 = mg.tensor(mg.lesson.input("x0", [[[-1, -0.5, 0], [0.5, 1, 1.5]]]), requires_grad=True)
x1 = mg.tensor(mg.lesson.input("x1", [[[1, 0.75], [0.5, 0.25], [0, -0.25]]]), requires_grad=True)
weight = mg.tensor([[[0.3, -1.2], [0.7, 2]]])
y = x0 @ x1
z = y * weight
L = z.sum()
mg.show(L)


# %%
def matmul(x0, x1):
    return ((x0 @ x1) * weight).sum()


mg.gradcheck(matmul, [x0, x1])

# %% [markdown]
# ## matmul batch-broadcast
#
# Two matrices on the left, one on the right: `x1` is used for both, so its gradient is the sum
# over the batch.

# %%
x0 = mg.tensor(
    mg.lesson.input(
        "x0",
        [[[-1, -0.5, 0], [0.5, 1, 1.5]], [[2, 2.5, 3], [3.5, 4, 4.5]]],
    ),
    requires_grad=True,
)
x1 = mg.tensor(mg.lesson.input("x1", [[[1, 0.75], [0.5, 0.25], [0, -0.25]]]), requires_grad=True)
weight = mg.tensor([[[0.3, -1.2], [0.7, 2]], [[1, 0.5], [-0.5, 1.5]]])
y = x0 @ x1
z = y * weight
L = z.sum()
mg.show(L)


# %%
def matmul_batch(x0, x1):
    return ((x0 @ x1) * weight).sum()


mg.gradcheck(matmul_batch, [x0, x1])
